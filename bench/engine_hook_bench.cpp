// Nanoseconds of engine work a gradient hook, apart from copying the gradient: the hooks of all
// parameters inside one graph task, on a runtime of no-op kernels. Third argument 1: each hook
// runs after the accumulation of its gradient, as in a backward; 0: all gradients accumulate before
// the first hook, so that many parameters have left the caches again.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>

#include "engine/engine_core.h"
#include "model/cpu_ops.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

class NoKernels final : public Kernels {
 public:
  void fill(Stream&, const Span&, double) override {}
  void copy(Stream&, const Span&, const Span&, double) override {}
  void add(Stream&, const Span&, const Span&, double) override {}
  void scale(Stream&, const Span&, double) override {}
  void divide(Stream&, const Span&, double) override {}
  void add_squares(Stream&, const Span&, const Span&) override {}
  void count_non_finite(Stream&, const Span&, const Span&) override {}
  void adam(Stream&, const AdamUpdate&) override {}
  void sgd(Stream&, const SgdUpdate&) override {}
  void clip_factor(Stream&, const Span&, const Span&, const ClipRule&) override {}
  void scale_by(Stream&, const Span&, const Span&) override {}
  std::vector<double> read(Stream&, const Span& source) override {
    return std::vector<double>(static_cast<std::size_t>(source.elements), 0.0);
  }
  void write(Stream&, const Span&, const std::vector<double>&) override {}
};

class IdleRuntime final : public Runtime {
 public:
  explicit IdleRuntime(Runtime& host) : host_(host) {}
  int rank() const override { return host_.rank(); }
  int world_size() const override { return host_.world_size(); }
  Device device() const override { return host_.device(); }
  Clock& clock() override { return host_.clock(); }
  Memory& memory() override { return host_.memory(); }
  Kernels& kernels() override { return kernels_; }
  const Ops& ops() const override { return host_.ops(); }
  Stream& stream(StreamRole role) override { return host_.stream(role); }
  Stream& user_stream(StreamIndex index) override { return host_.user_stream(index); }
  ProcessGroup& group(GroupKind kind) override { return host_.group(kind); }
  GraphCapture* graphs() override { return host_.graphs(); }
  std::optional<std::string> poll_error() override { return host_.poll_error(); }
  Journal* journal() override { return nullptr; }
  FaultPoint* faults() override { return nullptr; }

 private:
  Runtime& host_;
  NoKernels kernels_;
};

// Parameters in rows of modules: a module looks its names up one by one.
class Rows final : public nn::Module {
 public:
  explicit Rows(std::int64_t parameters) {
    constexpr std::int64_t kRow = 256;
    for (std::int64_t first = 0; first < parameters; first += kRow) {
      const auto row = register_module("r" + std::to_string(first), std::make_shared<Row>());
      for (std::int64_t i = first; i < std::min(first + kRow, parameters); ++i) row->add(i);
    }
  }

 protected:
  TensorList forward(Autograd&, const TensorList& inputs) const override { return inputs; }

 private:
  class Row final : public nn::Module {
   public:
    void add(std::int64_t number) {
      Tensor parameter = Tensor::full({1}, 1.0, DType::float32);
      parameter.set_requires_grad(true);
      register_parameter("p" + std::to_string(number), parameter);
    }

   protected:
    TensorList forward(Autograd&, const TensorList& inputs) const override { return inputs; }
  };
};

template <class Work>
double seconds_of(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(end - begin).count();
}

// One engine whose hooks are called by hand, inside a graph task as the autograd would.
class HookRun {
 public:
  HookRun(int stage, std::int64_t parameters, bool is_after_gradient)
      : is_after_gradient_(is_after_gradient),
        config_{.stage = stage},
        module_(parameters),
        core_(autograd_, module_, config_, runtime_, {}, LossScaler::of(config_)),
        bucket_(world_.runtime(0).memory().allocate(parameters, DType::float32)) {
    leaf_.set_requires_grad(true);
  }

  double seconds_of_hooks() {
    double seconds = 0.0;
    const Tensor root = mul(autograd_, leaf_, 2.0);
    root.register_hook([&](const Tensor&) {
      seconds =
          seconds_over_parameters([&](ZeroParameter& parameter) { core_.on_gradient(parameter); });
      return Tensor();
    });
    autograd_.backward(root);
    return seconds;
  }

  // Only what hands a gradient over: the call of the copy into a bucket, and .grad given up.
  double seconds_of_copies() {
    Kernels& kernels = runtime_.kernels();
    Stream& stream = runtime_.stream(StreamRole::compute);
    std::int64_t begin = 0;
    return seconds_over_parameters([&](ZeroParameter& parameter) {
      Tensor& grad = parameter.tensor.impl().grad;
      kernels.copy(stream, Span::of(bucket_, begin++, 1), Span::of(grad));
      grad = Tensor();
    });
  }

  // What the other two do besides, where hooks run after their gradients.
  double seconds_of_giving() {
    return is_after_gradient_ ? seconds_over_parameters([](ZeroParameter&) {}) : 0.0;
  }

 private:
  template <class Work>
  double seconds_over_parameters(Work work) {
    ZeroParameters& parameters = core_.context().parameters;
    if (!is_after_gradient_) {
      for (const ZeroParameter& parameter : parameters) parameter.tensor.set_grad(grad_);
      return seconds_of([&] {
        for (ZeroParameter& parameter : parameters) work(parameter);
      });
    }
    return seconds_of([&] {
      for (ZeroParameter& parameter : parameters) {
        parameter.tensor.set_grad(grad_);
        work(parameter);
      }
    });
  }

  bool is_after_gradient_;
  HostWorld world_{{.world_size = 1}};
  IdleRuntime runtime_{world_.runtime(0)};
  CpuOps ops_;
  Autograd autograd_{ops_};
  ZeroConfig config_;
  Rows module_;
  Engine::Core core_;
  Tensor bucket_;
  Tensor grad_ = Tensor::full({1}, 0.5, DType::float32);  // shared: its memory is not ours
  Tensor leaf_ = Tensor::full({}, 1.0, DType::float32);
};

void engine_hook(benchmark::State& state) {
  HookRun run(static_cast<int>(state.range(0)), state.range(1), state.range(2) == 1);
  double copies = 0.0;
  double hooks = 0.0;
  for (auto _ : state) {
    const double giving = run.seconds_of_giving();
    copies += run.seconds_of_copies() - giving;
    const double seconds = run.seconds_of_hooks();
    hooks += seconds - giving;
    state.SetIterationTime(seconds);
  }
  const auto calls = static_cast<double>(state.iterations() * state.range(1));
  const bool copies_in_hook = state.range(0) == 2;  // stage 1 sums later, stage 3 keeps .grad
  state.counters["ns_per_hook"] = hooks / calls * 1e9;
  state.counters["ns_copy"] = copies_in_hook ? copies / calls * 1e9 : 0.0;
  state.counters["ns_without_copy"] = (hooks - (copies_in_hook ? copies : 0.0)) / calls * 1e9;
}

BENCHMARK(engine_hook)
    ->ArgsProduct({{1, 2, 3}, {147, 65'536}, {0, 1}})
    ->ArgNames({"stage", "params", "after"})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace zeroproof

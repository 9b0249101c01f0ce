// Nanoseconds of engine work a gradient hook, apart from copying the gradient: the hooks of all
// parameters inside one graph task, on a runtime whose kernels do nothing.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>

#include "engine/engine_core.h"
#include "engine/runtime/host/host_world.h"
#include "model/cpu_ops.h"
#include "model/functions.h"

namespace zeroproof {
namespace {

class NoKernels final : public Kernels {
 public:
  void fill(Stream&, Span, double) override {}
  void copy(Stream&, Span, Span, double) override {}
  void add(Stream&, Span, Span, double) override {}
  void scale(Stream&, Span, double) override {}
  void divide(Stream&, Span, double) override {}
  void add_squares(Stream&, Span, Span) override {}
  void count_non_finite(Stream&, Span, Span) override {}
  void adam(Stream&, const AdamUpdate&) override {}
  void sgd(Stream&, const SgdUpdate&) override {}
  std::vector<double> read(Stream&, Span source) override {
    return std::vector<double>(static_cast<std::size_t>(source.elements), 0.0);
  }
  void write(Stream&, Span, const std::vector<double>&) override {}
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

void engine_hook(benchmark::State& state) {
  HostWorld world({.world_size = 1});
  IdleRuntime runtime(world.runtime(0));
  const CpuOps ops;
  Autograd autograd(ops);
  Rows module(state.range(1));
  const ZeroConfig config{.stage = static_cast<int>(state.range(0))};
  Engine::Core core(autograd, module, config, runtime, {}, LossScaler::of(config));
  const Tensor grad = Tensor::full({1}, 0.5, DType::float32);  // shared: its memory is not ours
  Tensor leaf = Tensor::full({}, 1.0, DType::float32);
  leaf.set_requires_grad(true);
  for (auto _ : state) {
    double seconds = 0.0;
    const Tensor root = mul(autograd, leaf, 2.0);
    root.register_hook([&](const Tensor&) {
      for (const ZeroParameter& parameter : core.context.parameters)
        parameter.tensor.set_grad(grad);
      const auto begin = std::chrono::steady_clock::now();
      for (ZeroParameter& parameter : core.context.parameters) core.on_gradient(parameter);
      const auto end = std::chrono::steady_clock::now();
      seconds = std::chrono::duration<double>(end - begin).count();
      return Tensor();
    });
    autograd.backward(root);
    state.SetIterationTime(seconds);
  }
  state.counters["ns_per_hook"] =
      benchmark::Counter(static_cast<double>(state.iterations() * state.range(1)) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK(engine_hook)
    ->ArgsProduct({{1, 2, 3}, {147, 65'536}})
    ->ArgNames({"stage", "params"})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace zeroproof

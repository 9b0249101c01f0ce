// Saves and loads checkpoints of shards in a process whose memory is limited to what its ranks hold
// anyway and some MiB. bench/checkpoint_memory.py runs it and makes the table.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>

#include "bench/checkpoint/process_memory.h"
#include "engine/checkpoint/shards.h"
#include "engine/files/posix_file_system.h"
#include "model/cpu_ops.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

constexpr const char* kUsage =
    "usage: zeroproof_checkpoint_bench make FOLDER ELEMENTS\n"
    "       zeroproof_checkpoint_bench reshard FROM TO ELEMENTS RANKS STAGE LIMIT_MIB\n"
    "A model of ELEMENTS parameters with Adam's states. `make` writes a checkpoint of shards with\n"
    "drawn values; `reshard` loads it with RANKS threads and saves it again (TO empty: loads "
    "only).\n"
    "LIMIT_MIB 0: no limit.\n";

struct Parameter {
  std::string name;
  Shape sizes;
};

// One matrix that is half of the model, and layers.
std::vector<Parameter> parameters_of(std::int64_t elements) {
  constexpr std::int64_t kWidth = 1000;
  constexpr std::int64_t kLayers = 8;
  std::vector<Parameter> parameters = {{"embedding_weight", {elements / 2 / kWidth, kWidth}}};
  for (std::int64_t i = 0; i < kLayers; ++i) {
    const std::string name = fmt::format("layer{}", i);
    parameters.push_back({name + "_weight", {elements / 2 / kLayers / kWidth, kWidth}});
    parameters.push_back({name + "_bias", {kWidth + i}});
  }
  return parameters;
}

class LargeModel final : public nn::Module {
 public:
  explicit LargeModel(std::int64_t elements) {
    for (const Parameter& of : parameters_of(elements)) {
      Tensor tensor = Tensor::full(of.sizes, 0.5, DType::float32);
      tensor.set_requires_grad(true);
      register_parameter(of.name, tensor);
    }
  }

 protected:
  TensorList forward(Autograd&, const TensorList& inputs) const override { return inputs; }
};

// Bits of a float32 without exponent surprises: every element of every state is another one.
double drawn_value(std::int64_t state, std::int64_t element) {
  std::uint64_t x =
      static_cast<std::uint64_t>(state) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(element);
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<double>(static_cast<float>((x >> 40U) + 1) * 0x1p-24F);
}

int make(const std::string& folder, std::int64_t elements) {
  ShardState state{.head = {.groups = {{}}, .counters = {.global_steps = 3}}, .data = {0, 1}};
  std::vector<TensorImpl> states(3 * parameters_of(elements).size());
  std::map<const TensorImpl*, std::int64_t> numbers;
  for (const Parameter& of : parameters_of(elements)) {
    const std::string& name = of.name;
    state.head.groups[0].parameters.push_back(name);
    state.steps[name] = 3;
    for (const char* key : {"fp32", "exp_avg", "exp_avg_sq"}) {
      TensorImpl* impl = &states[numbers.size()];
      numbers.emplace(impl, std::ssize(numbers));
      state.shards.push_back({name, key, of.sizes, 0, {impl, 0, numel(of.sizes)}});
    }
  }
  const ShardValues values{
      .read =
          [&](const Span& from) {
            std::vector<double> drawn;
            drawn.reserve(static_cast<std::size_t>(from.elements));
            for (std::int64_t i = 0; i < from.elements; ++i)
              drawn.push_back(drawn_value(numbers.at(from.tensor), from.begin + i));
            return drawn;
          },
      .write = {}};
  const auto saved = save_shards(state, values, posix_file_system(), folder, {});
  if (!saved) fmt::print(stderr, "{}\n", saved.error().text);
  return saved ? 0 : 1;
}

struct Reshard {
  std::string from, to;
  std::int64_t elements = 0;
  int ranks = 1;
  int stage = 3;
  std::int64_t limit_kib = 0;
};

// One of the two things that are measured; by rank 0, for the process.
class Measured {
 public:
  Measured(Runtime& runtime, const char* what, std::int64_t limit_kib)
      : runtime_(runtime), what_(what) {
    meet();
    if (runtime.rank() == 0) {
      reset_peak();
      before_ = process_memory();
      limit_more_memory(limit_kib);
    }
    meet();
    begin_ = std::chrono::steady_clock::now();
  }

  void finish(const Result<void>& done) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin_;
    meet();
    if (!done) throw std::runtime_error(done.error().text);
    if (runtime_.rank() == 0) {
      const ProcessMemory after = process_memory();
      limit_more_memory(0);
      fmt::print(R"({{"what": "{}", "seconds": {:.2f}, "data_before_kib": {}, )"
                 R"("resident_before_kib": {}, "resident_peak_kib": {}}})"
                 "\n",
                 what_, took.count(), before_.data, before_.resident, after.resident_peak);
    }
    meet();
  }

 private:
  void meet() {
    const Tensor one = runtime_.memory().allocate(1, DType::float64);
    runtime_.kernels().fill(runtime_.stream(StreamRole::compute), Span::of(one), 1.0);
    ProcessGroup& all = runtime_.group(GroupKind::data);
    Stream& stream = runtime_.stream(StreamRole::compute);
    all.wait(all.all_reduce(stream, Span::of(one), ReduceOp::sum), stream);
  }

  Runtime& runtime_;
  const char* what_;
  ProcessMemory before_;
  std::chrono::steady_clock::time_point begin_;
};

int reshard(const Reshard& of) {
  HostWorld({.world_size = of.ranks, .is_poisoned = false}).run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    LargeModel model(of.elements);
    ZeroConfig config{.stage = of.stage};
    config.optimizer.type = OptimizerType::adam;
    auto engine = Engine::initialize(ag, model, config, runtime);
    if (!engine) throw std::runtime_error(engine.error().text);
    const EngineCheckpointOptions shards{.layout = CheckpointLayout::shards};
    Measured load(runtime, "load", of.limit_kib);
    load.finish((*engine)->load_checkpoint(of.from, shards));
    if (of.to.empty()) return;
    Measured save(runtime, "save", of.limit_kib);
    save.finish((*engine)->save_checkpoint(of.to, shards));
  });
  return 0;
}

int run(int argc, char** argv) {
  const std::string action = argc > 1 ? argv[1] : "";
  if (action == "make" && argc == 4) return make(argv[2], std::atoll(argv[3]));
  if (action == "reshard" && argc == 8)
    return reshard({.from = argv[2],
                    .to = argv[3],
                    .elements = std::atoll(argv[4]),
                    .ranks = std::atoi(argv[5]),
                    .stage = std::atoi(argv[6]),
                    .limit_kib = 1024 * std::atoll(argv[7])});
  fmt::print(stderr, "{}", kUsage);
  return 2;
}

}  // namespace
}  // namespace zeroproof

int main(int argc, char** argv) {
  try {
    return zeroproof::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "zeroproof_checkpoint_bench: {}\n", error.what());
    return 1;
  }
}

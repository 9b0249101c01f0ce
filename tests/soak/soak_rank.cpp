// One rank of a job that saves while it trains, and goes on from the newest checkpoint whenever it
// is started again. soak.py starts eight of them, and does to them what machines do.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "engine/checkpoint/manifest.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/engine/runtime/process/job.h"
#include "zeroproof/engine/zero_config.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/mlp.h"

namespace zeroproof {
namespace {

constexpr const char* kUsage =
    "usage: zeroproof_soak_rank CHECKPOINTS STAGE STEPS SAVE_EVERY TIMEOUT_MS [STORE_FOLDER]\n"
    "A rank of RANK and WORLD_SIZE; without a folder the store is at MASTER_ADDR.\n";
constexpr int kSaved = 0;
constexpr int kEnded = 1;  // with a reason on stderr
constexpr int kUsageError = 2;

struct SoakOptions {
  std::string folder;
  int stage = 3;
  std::int64_t steps = 0;
  std::int64_t save_every = 1;
  std::int64_t timeout_ms = 0;
  std::string store;
};

Environment launch_variables() {
  Environment found;
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
                           "MASTER_PORT", "ZEROPROOF_STORE_TOKEN", "TORCHELASTIC_RUN_ID"})
    if (const char* value = std::getenv(name)) found[name] = value;
  return found;
}

class SoakRank {
 public:
  SoakRank(const SoakOptions& options, Runtime& runtime)
      : options_(options), runtime_(runtime), ag_(runtime.ops()) {
    ZeroConfig config{.stage = options.stage};
    config.optimizer.type = OptimizerType::adam;
    engine_ = Engine::initialize(ag_, net_, config, runtime).value();
  }

  void run() {
    resume();
    while (engine_->global_steps() < options_.steps) {
      step();
      if (engine_->global_steps() % options_.save_every == 0) save();
    }
    report(engine_->wait_checkpoint(), "the last save");
    say(fmt::format("done {}", record_of(values()).checksum));
  }

 private:
  // Where the run begins there is no checkpoint yet.
  void resume() {
    const auto loaded = engine_->load_checkpoint(options_.folder, in_shards());
    if (!loaded) report(loaded, "no checkpoint is loaded");
    say(fmt::format("begins after step {}", engine_->global_steps()));
  }

  // Data of the step and the rank, so that a run that goes on sees what it would have seen.
  void step() {
    const double seed = 0.01 * static_cast<double>(engine_->global_steps() + 1) +
                        0.001 * static_cast<double>(runtime_.rank());
    const Tensor x = Tensor::full({2, 16}, seed, DType::float32);
    const Tensor y = engine_->forward(x);
    engine_->backward(mean(ag_, mul(ag_, y, y)));
    engine_->step();
  }

  void save() {
    report(engine_->async_save_checkpoint(options_.folder, in_shards()),
           fmt::format("save after step {}", engine_->global_steps()));
  }

  EngineCheckpointOptions in_shards() const { return {.layout = CheckpointLayout::shards}; }

  // A save that fails is no reason to end.
  void report(const Result<void>& result, const std::string& what) const {
    if (!result) say(fmt::format("{}: {}", what, result.error().text));
  }

  void say(const std::string& text) const {
    if (runtime_.rank() != 0) return;
    fmt::print("{}\n", text);
    std::fflush(stdout);
  }

  std::string values() {
    std::string bytes;
    for (const FullTensor& tensor : engine_->full_parameters())
      bytes.append(reinterpret_cast<const char*>(tensor.values.data()),
                   tensor.values.size() * sizeof(double));
    return bytes;
  }

  const SoakOptions& options_;
  Runtime& runtime_;
  Autograd ag_;
  nn::InitStream init_{7};
  nn::Mlp net_{init_, {.width = 16, .hidden = 64, .dtype = DType::float32}};
  std::unique_ptr<Engine> engine_;
};

int run(const SoakOptions& options) {
  const auto launch = read_launch(launch_variables());
  if (!launch || !*launch) return fmt::print(stderr, "{}", kUsage), kUsageError;
  const std::chrono::milliseconds timeout(options.timeout_ms);
  const auto job = Job::join(**launch, {.store_folder = options.store, .timeout = timeout});
  if (!job) return fmt::print(stderr, "{}\n", job.error().text), kEnded;
  HostWorld world({.world_size = (*job)->size(), .timeout_ms = options.timeout_ms, .job = *job});
  try {
    world.run([&](Runtime& runtime) { SoakRank(options, runtime).run(); });
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return kEnded;
  }
  return kSaved;
}

}  // namespace
}  // namespace zeroproof

int main(int argc, char** argv) {
  if (argc < 6) return fmt::print(stderr, "{}", zeroproof::kUsage), zeroproof::kUsageError;
  return zeroproof::run({.folder = argv[1],
                         .stage = std::atoi(argv[2]),
                         .steps = std::atol(argv[3]),
                         .save_every = std::atol(argv[4]),
                         .timeout_ms = std::atol(argv[5]),
                         .store = argc > 6 ? argv[6] : ""});
}

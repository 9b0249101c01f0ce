// A checkpoint of shards, saved by some ranks and loaded by others: each rank writes the part that
// it owns, and reads the part that it will own.
//   resume_on_ranks save FOLDER RANKS    ten steps on so many ranks, then a checkpoint
//   resume_on_ranks load FOLDER RANKS    goes on from it on so many ranks, to step 20
// Without words: saved on 2 ranks, loaded on 4 and on 2.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/engine/zero_config.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/mlp.h"

namespace {

using namespace zeroproof;

constexpr const char* kConfig = R"({
  "train_micro_batch_size_per_gpu": 4,
  "optimizer": {"type": "Adam", "params": {"lr": 0.01}},
  "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}
})";

struct Job {
  std::string folder;
  bool saves = false;
  int ranks = 1;
};

void require_done(const Result<void>& result) {
  if (!result) throw UsageError(result.error().text);
}

// All ranks have the same rows, so their average is the same for any number of ranks.
void take_steps(Engine& engine, Autograd& autograd, int last) {
  while (engine.global_steps() < last) {
    const Tensor y = engine.forward(Tensor::full({4, 4}, 0.25, DType::float32));
    engine.backward(mean(autograd, mul(autograd, y, y)));
    engine.step();
  }
}

double sum_of(const std::vector<FullTensor>& parameters) {
  double sum = 0;
  for (const FullTensor& parameter : parameters)
    for (const double value : parameter.values) sum += value;
  return sum;
}

// What every rank does.
void train(Runtime& runtime, const ZeroConfig& config, const Job& job) {
  Autograd autograd(runtime.ops());
  nn::InitStream init(7);
  nn::Mlp net(init, {.width = 4, .hidden = 8, .dtype = DType::float32});
  auto engine = Engine::initialize(autograd, net, config, runtime);
  if (!engine) throw UsageError(engine.error().text);
  const EngineCheckpointOptions shards{.layout = CheckpointLayout::shards};
  if (!job.saves) require_done((*engine)->load_checkpoint(job.folder, shards));
  take_steps(**engine, autograd, job.saves ? 10 : 20);
  if (job.saves) require_done((*engine)->save_checkpoint(job.folder, shards));
  const auto parameters = (*engine)->full_parameters();
  if (runtime.rank() == 0)
    std::printf("%s on %d ranks, now at step %d: weights sum to %.6f\n",
                job.saves ? "saved" : "resumed", job.ranks,
                static_cast<int>((*engine)->global_steps()), sum_of(parameters));
}

bool run(const Job& job) try {
  const auto parsed = parse_ds_config(kConfig, "resume_on_ranks");
  if (!parsed) throw UsageError(parsed.error().text);
  HostWorld world({.world_size = job.ranks});
  world.run([&](Runtime& runtime) { train(runtime, parsed->config, job); });
  return true;
} catch (const UsageError& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) {
    const bool is_done = run({"checkpoints", true, 2}) && run({"checkpoints", false, 4}) &&
                         run({"checkpoints", false, 2});
    return is_done ? 0 : 1;
  }
  const std::string word = argv[1];
  const int ranks = argc == 4 ? std::atoi(argv[3]) : 0;
  if (ranks < 1 || (word != "save" && word != "load"))
    return std::fprintf(stderr, "usage: resume_on_ranks save|load FOLDER RANKS\n"), 2;
  return run({argv[2], word == "save", ranks}) ? 0 : 1;
}

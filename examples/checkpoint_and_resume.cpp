// A checkpoint after ten steps, and another engine that goes on from it: parameters, optimizer
// state, loss scale, counters and the learning rate's schedule are as without the interruption.
#include <cstdio>
#include <cstdlib>

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
  "scheduler": {"type": "OneCycle",
                "params": {"cycle_min_lr": 0.001, "cycle_max_lr": 0.02,
                           "cycle_first_step_size": 8}},
  "zero_optimization": {"stage": 2},
  "fp16": {"enabled": true, "initial_scale_power": 8}
})";

// A training that owns all that it needs.
class Training {
 public:
  Training(Runtime& runtime, const ZeroConfig& config)
      : autograd_(runtime.ops()), init_(7), net_(init_, {.width = 4, .hidden = 8}) {
    auto made = Engine::initialize(autograd_, net_, config, runtime);
    if (!made) throw UsageError(made.error().text);
    engine_ = std::move(*made);
  }

  Engine& engine() { return *engine_; }

  void take_steps(int steps) {
    for (int step = 0; step < steps; ++step) {
      const Tensor x = Tensor::full({4, 4}, 0.25, DType::float16);
      const Tensor y = engine_->forward(x);
      engine_->backward(mean(autograd_, mul(autograd_, y, y)));
      engine_->step();
    }
  }

 private:
  Autograd autograd_;
  nn::InitStream init_;
  nn::Mlp net_;
  std::unique_ptr<Engine> engine_;
};

void require_done(const Result<void>& result) {
  if (!result) throw UsageError(result.error().text);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "checkpoints";
  const auto parsed = parse_ds_config(kConfig, "checkpoint_and_resume");
  if (!parsed) return std::fprintf(stderr, "%s\n", parsed.error().text.c_str()), 2;
  HostWorld world({.world_size = 1});
  Training first(world.runtime(0), parsed->config);
  first.take_steps(10);
  require_done(first.engine().save_checkpoint(folder));
  first.take_steps(10);
  Training second(world.runtime(0), parsed->config);
  require_done(second.engine().load_checkpoint(folder));  // the latest
  std::printf("resumed after step %d at learning rate %.6f\n",
              static_cast<int>(second.engine().global_steps()),
              second.engine().learning_rates().at(0));
  second.take_steps(10);
  const auto expected = first.engine().full_parameters();
  const auto found = second.engine().full_parameters();
  bool is_same = true;
  for (std::size_t i = 0; i < expected.size(); ++i)
    is_same = is_same && expected[i].values == found[i].values;
  std::printf("after step 20: %s\n", is_same ? "the same bits" : "other values");
  return is_same ? 0 : 1;
}

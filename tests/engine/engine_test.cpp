#include "zeroproof/engine/engine.h"

#include <gtest/gtest.h>

#include <memory>

#include "model/cpu_ops.h"
#include "tests/engine/support/small_models.h"
#include "tests/scratch_path.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof {
namespace {

class Net final : public nn::Module {
 public:
  Net() {
    l1_ = register_module(
        "l1", std::make_shared<nn::Linear>(trainable({6, 4}, 0.0), trainable({6}, 0.1)));
    l2_ = register_module(
        "l2", std::make_shared<nn::Linear>(trainable({3, 6}, 0.05), trainable({3}, -0.1)));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor hidden = tanh(ag, (*l1_)(ag, inputs.at(0)));
    return {mean(ag, sq(ag, (*l2_)(ag, hidden)))};
  }

 private:
  std::shared_ptr<nn::Linear> l1_;
  std::shared_ptr<nn::Linear> l2_;
};

struct TrainedValues {
  std::vector<FullTensor> gradients;
  std::vector<FullTensor> parameters;
};

TrainedValues train(const ZeroConfig& config, int world_size, bool is_manual) {
  TrainedValues outcome;
  HostWorld world({.world_size = world_size});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd autograd(ops);
    Net net;
    auto engine = Engine::initialize(autograd, net, config, runtime).value();
    for (int step = 0; step < 3; ++step) {
      for (int micro = 0; micro < config.gradient_accumulation_steps; ++micro) {
        const Tensor loss = engine->forward(filled({2, 4}, 0.01 * (runtime.rank() + 10 * micro)));
        if (is_manual) {
          autograd.backward(loss);
        } else {
          engine->backward(loss);
        }
        const auto gradients = engine->full_gradients();
        if (runtime.rank() == 0) outcome.gradients = gradients;
        engine->step();
      }
    }
    auto parameters = engine->full_parameters();
    if (runtime.rank() == 0) outcome.parameters = std::move(parameters);
    EXPECT_EQ(engine->global_steps(), 3);
  });
  return outcome;
}

bool is_near(const std::vector<FullTensor>& a, const std::vector<FullTensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].values.size(); ++j)
      if (!(std::abs(a[i].values[j] - b[i].values[j]) < 1e-5)) return false;
  return true;
}

TEST(Engine, All_stages_train_alike) {
  for (const int world_size : {1, 2, 3, 4})
    for (const int gas : {1, 2}) {
      ZeroConfig config{.stage = 0, .gradient_accumulation_steps = gas};
      const TrainedValues plain = train(config, world_size, false);
      EXPECT_NE(plain.gradients.at(0).values.at(0), 0.0);
      for (const int stage : {1, 2, 3})
        for (const bool is_manual : {false, true})
          for (const bool has_overlap : {false, true}) {
            config.stage = stage;
            config.overlap_comm = has_overlap;
            config.reduce_bucket_size = 30;
            const TrainedValues outcome = train(config, world_size, is_manual);
            EXPECT_TRUE(is_near(plain.gradients, outcome.gradients))
                << stage << " " << world_size << " " << is_manual << has_overlap << gas;
            EXPECT_TRUE(is_near(plain.parameters, outcome.parameters))
                << stage << " " << world_size << " " << is_manual << has_overlap << gas;
          }
    }
}

TEST(Engine, Goes_on_from_a_checkpoint_with_other_ranks_and_stages) {
  const std::string folder = scratch_path("engine_checkpoint");
  const auto run = [&](int stage, int world_size, bool saves, int steps) {
    std::vector<FullTensor> parameters;
    HostWorld world({.world_size = world_size});
    world.run([&](Runtime& runtime) {
      const CpuOps ops;
      Autograd autograd(ops);
      Net net;
      auto engine = Engine::initialize(autograd, net, {.stage = stage}, runtime).value();
      if (!saves && steps > 0) {
        const auto loaded = engine->load_checkpoint(folder);
        EXPECT_TRUE(loaded.has_value()) << loaded.error().text;
        EXPECT_EQ(engine->global_steps(), 2);
      }
      for (int step = 0; step < steps; ++step) {
        engine->backward(engine->forward(filled({2, 4}, 0.01)));
        engine->step();
      }
      if (saves) {
        const auto saved = engine->save_checkpoint(folder);
        EXPECT_TRUE(saved.has_value()) << saved.error().text;
      }
      auto values = engine->full_parameters();
      if (runtime.rank() == 0) parameters = std::move(values);
    });
    return parameters;
  };
  run(1, 2, true, 2);
  const auto expected = run(1, 2, false, 1);
  for (const int stage : {0, 2, 3})
    for (const int world_size : {1, 4})
      EXPECT_TRUE(is_near(expected, run(stage, world_size, false, 1))) << stage << world_size;
}

}  // namespace
}  // namespace zeroproof

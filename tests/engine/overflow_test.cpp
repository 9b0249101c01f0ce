// An infinity on one rank: no rank updates, all follow the same rule of the scale (P57, 2.19).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "engine/engine.h"
#include "engine/runtime/host/host_world.h"
#include "model/cpu_ops.h"
#include "tests/engine/support/small_models.h"

namespace zeroproof {
namespace {

enum class Scaler { fixed, dynamic, grad_scaler, custom };

struct Case {
  int stage = 0;
  Scaler scaler = Scaler::fixed;
};

ZeroConfig config_of(const Case& one) {
  ZeroConfig config{.stage = one.stage, .gradient_clipping = 0.0};
  switch (one.scaler) {
    case Scaler::fixed:
      config.fp16 = {.enabled = true, .loss_scale = 8.0};
      break;
    case Scaler::dynamic:
      config.fp16 = {.enabled = true, .initial_scale_power = 4, .hysteresis = 1};
      break;
    case Scaler::grad_scaler:
      config.torch_autocast = {.enabled = true, .dtype = DType::float16};
      break;
    case Scaler::custom:
      break;
  }
  return config;
}

double scale_after_overflow(Scaler scaler, double before) {
  return scaler == Scaler::dynamic || scaler == Scaler::grad_scaler ? before / 2 : before;
}

class Overflow : public testing::TestWithParam<Case> {};

TEST_P(Overflow, On_one_rank_skips_the_step_of_all) {
  const Case one = GetParam();
  HostWorld world({.world_size = 2});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd autograd(ops);
    MlpModel model;
    EngineOptions options;
    if (one.scaler == Scaler::custom) options.custom_loss_scale = 4.0;
    auto engine = Engine::initialize(autograd, model, config_of(one), runtime, options).value();
    const DType dtype = engine->config().model_dtype();
    const Tensor x = ops.cast(filled({2, 4}, 0.1), dtype);
    const auto train_one = [&](bool overflows) {
      const Tensor loss = engine->forward(x);
      if (overflows)
        loss.register_hook([&](const Tensor& grad) {
          return Tensor::full(grad.sizes(), std::numeric_limits<double>::infinity(), grad.dtype());
        });
      engine->backward(loss);
      return engine->step();
    };
    const double scale = engine->loss_scale();
    const auto before = engine->full_parameters();
    const StepOutcome skipped = train_one(runtime.rank() == 1);
    EXPECT_TRUE(skipped.has_overflow);
    EXPECT_FALSE(skipped.is_applied);
    EXPECT_EQ(engine->skipped_steps(), 1);
    EXPECT_EQ(engine->global_steps(), 1);
    EXPECT_EQ(engine->loss_scale(), scale_after_overflow(one.scaler, scale));
    const auto after = engine->full_parameters();
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].values, after[i].values);

    const StepOutcome applied = train_one(false);
    EXPECT_TRUE(applied.is_applied);
    EXPECT_EQ(engine->skipped_steps(), 1);
    const auto moved = engine->full_parameters();
    EXPECT_NE(before.at(0).values, moved.at(0).values);
    for (const FullTensor& parameter : moved)
      for (const double value : parameter.values) EXPECT_TRUE(std::isfinite(value));
  });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int stage : {0, 1, 2, 3})
    for (const Scaler scaler :
         {Scaler::fixed, Scaler::dynamic, Scaler::grad_scaler, Scaler::custom})
      all.push_back({stage, scaler});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Scalers, Overflow, testing::ValuesIn(cases()));

}  // namespace
}  // namespace zeroproof

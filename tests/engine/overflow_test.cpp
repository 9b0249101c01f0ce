// An infinity on one rank: no rank updates, all follow the same rule of the scale (P57, 2.19).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "model/cpu_ops.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

enum class Scaler { fixed, dynamic, grad_scaler, custom, external, none, bf16 };

struct OverflowCase {
  int stage = 0;
  Scaler scaler = Scaler::fixed;
};

ZeroConfig overflow_config(const OverflowCase& one) {
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
    case Scaler::external:
    case Scaler::none:
      break;
    case Scaler::bf16:
      config.bf16 = {.enabled = true};
      break;
  }
  return config;
}

double scale_after_overflow(Scaler scaler, double before) {
  return scaler == Scaler::dynamic || scaler == Scaler::grad_scaler ? before / 2 : before;
}

class Overflow : public ::testing::TestWithParam<OverflowCase> {};

TEST_P(Overflow, On_one_rank_skips_the_step_of_all) {
  const OverflowCase one = GetParam();
  HostWorld world({.world_size = 2});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd autograd(ops);
    MlpModel model;
    EngineOptions options;
    if (one.scaler == Scaler::custom) options.custom_loss_scale = 4.0;
    auto engine =
        Engine::initialize(autograd, model, overflow_config(one), runtime, options).value();
    if (one.scaler == Scaler::external) {
      ASSERT_TRUE(engine->override_loss_scale(4.0));
    }
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

std::vector<OverflowCase> overflow_cases() {
  std::vector<OverflowCase> all;
  for (const int stage : {0, 1, 2, 3})
    for (const Scaler scaler : {Scaler::fixed, Scaler::dynamic, Scaler::grad_scaler, Scaler::custom,
                                Scaler::external, Scaler::none, Scaler::bf16})
      all.push_back({stage, scaler});
  return all;
}

// What becomes of an infinite gradient that has no scaler.
struct Unscaled {
  const char* what;
  bool checks_bf16;
  const char* quirks;
  bool is_skipped;
};

TEST(OverflowWithoutScaler, Is_applied_where_it_is_asked_for_and_by_older_releases) {
  constexpr Unscaled kCases[] = {
      {"bf16 that is checked", true, "none", true},
      {"bf16 that is not", false, "none", false},
      {"0.19.8", true, "deepspeed-0.19.8", true},
      {"0.19.7", true, "deepspeed-0.19.7", false},
  };
  for (const Unscaled& one : kCases) {
    SCOPED_TRACE(one.what);
    HostWorld world({});
    const CpuOps ops;
    Autograd autograd(ops);
    MlpModel model;
    ZeroConfig config{.stage = 3, .gradient_clipping = 1.0};
    config.bf16 = {.enabled = true, .check_grad_overflow = one.checks_bf16};
    auto engine = Engine::initialize(autograd, model, config, world.runtime(0),
                                     {.quirks = *Quirks::parse(one.quirks)})
                      .value();
    const Tensor loss = engine->forward(ops.cast(filled({2, 4}, 0.1), DType::bfloat16));
    loss.register_hook([](const Tensor& grad) {
      return Tensor::full(grad.sizes(), std::numeric_limits<double>::infinity(), grad.dtype());
    });
    engine->backward(loss);
    EXPECT_EQ(engine->step().has_overflow, one.is_skipped);
  }
}

// An external scale is the caller's to move, between windows, over whatever the configuration says.
TEST(OverrideLossScale, Takes_the_place_of_the_scale_from_the_next_forward_on) {
  for (const int stage : {0, 1, 2, 3}) {
    HostWorld world({});
    const CpuOps ops;
    Autograd autograd(ops);
    MlpModel model;
    auto engine = Engine::initialize(autograd, model, {.stage = stage}, world.runtime(0)).value();
    const Tensor x = filled({2, 4}, 0.1);
    const auto gradient_with = [&](double loss_scale) {
      EXPECT_TRUE(engine->override_loss_scale(loss_scale));
      EXPECT_TRUE(engine->needs_scaler());
      EXPECT_EQ(engine->loss_scale(), loss_scale);
      engine->backward(engine->forward(x));
      auto gradient = engine->full_gradients().at(0).values;
      const auto other = engine->override_loss_scale(2.0 * loss_scale);
      EXPECT_FALSE(other) << "the window has gradients";
      EXPECT_EQ(other.error().code, ErrorCode::usage);
      EXPECT_TRUE(engine->override_loss_scale(loss_scale)) << "the same again is no change";
      engine->zero_grad();
      return gradient;
    };
    EXPECT_EQ(gradient_with(1.0), gradient_with(1024.0)) << "powers of two do not round";
    EXPECT_FALSE(engine->override_loss_scale(0.0));
    EXPECT_FALSE(engine->override_loss_scale(std::numeric_limits<double>::infinity()));
  }
}

INSTANTIATE_TEST_SUITE_P(Scalers, Overflow, ::testing::ValuesIn(overflow_cases()));

}  // namespace
}  // namespace zeroproof

// The loss scaler against a model that counts good steps instead of iterations (P58), and against
// numbers worked out by hand from docs/spec/zero.md 2.19.
#include "engine/precision/loss_scaler.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "zeroproof/engine/engine_error.h"

namespace zeroproof {
namespace {

ZeroConfig dynamic_config(const Fp16Config& fp16) {
  ZeroConfig config;
  config.fp16 = fp16;
  config.fp16.enabled = true;
  return config;
}

// Powers of two and lengths of good runs; no iteration numbers.
struct GoodRunModel {
  Fp16Config fp16;
  int power = fp16.initial_scale_power;
  std::int64_t overflows_left = fp16.hysteresis;
  std::int64_t good_run = 0;

  // False: the scale could not shrink any more.
  bool step(bool has_overflow) {
    if (!has_overflow) {
      const bool grows = good_run > 0 && good_run % fp16.loss_scale_window == 0;
      if (grows) ++power;
      if (grows || fp16.consecutive_hysteresis) overflows_left = fp16.hysteresis;
      ++good_run;
      return true;
    }
    if (overflows_left > 1) {
      --overflows_left;
    } else if (std::ldexp(1.0, power) == fp16.min_loss_scale) {
      return false;
    } else {
      --power;
    }
    good_run = 0;
    return true;
  }
};

RC_GTEST_PROP(LossScaler, Follows_the_dynamic_rule_over_any_overflows_P58, ()) {
  Fp16Config fp16;
  fp16.initial_scale_power = *rc::gen::inRange(0, 8);
  fp16.loss_scale_window = *rc::gen::inRange(1, 6);
  fp16.hysteresis = *rc::gen::inRange(1, 5);
  fp16.consecutive_hysteresis = *rc::gen::arbitrary<bool>();
  fp16.min_loss_scale = std::ldexp(1.0, *rc::gen::inRange(0, fp16.initial_scale_power + 1));
  const auto overflows = *rc::gen::container<std::vector<bool>>(
      60, rc::gen::weightedElement<bool>({{3, false}, {1, true}}));

  LossScaler scaler = LossScaler::of(dynamic_config(fp16));
  GoodRunModel model{.fp16 = fp16};
  std::int64_t steps = 0;
  for (const bool has_overflow : overflows) {
    const LossScaler::State before = scaler.state();
    RC_ASSERT(before.iteration == steps);
    if (!model.step(has_overflow)) {
      RC_ASSERT_THROWS_AS(scaler.update(true), EngineError);
      RC_ASSERT(scaler.state() == before);
      return;
    }
    scaler.update(has_overflow);
    ++steps;
    RC_ASSERT(scaler.scale() == std::ldexp(1.0, model.power));
    RC_ASSERT(scaler.state().hysteresis == model.overflows_left);
  }
}

RC_GTEST_PROP(LossScaler, Goes_on_after_restore_as_if_never_stopped, ()) {
  ZeroConfig config = dynamic_config({.loss_scale_window = 3, .min_loss_scale = 0x1p-300});
  if (*rc::gen::arbitrary<bool>()) {
    config.fp16.enabled = false;
    config.torch_autocast = {.enabled = true, .dtype = DType::float16};
  }
  LossScaler scaler = LossScaler::of(config);
  for (const bool overflow : *rc::gen::arbitrary<std::vector<bool>>()) scaler.update(overflow);
  LossScaler other = LossScaler::of(config);
  other.restore(scaler.state());
  for (const bool overflow : *rc::gen::arbitrary<std::vector<bool>>()) {
    scaler.update(overflow);
    other.update(overflow);
    RC_ASSERT(scaler.state() == other.state());
  }
}

TEST(LossScaler, Doubles_after_a_window_of_good_steps) {
  LossScaler scaler = LossScaler::of(dynamic_config({.loss_scale_window = 2}));
  std::vector<double> scales;
  for (int step = 0; step < 6; ++step) {
    scaler.update(false);
    scales.push_back(scaler.scale());
  }
  // stable = iteration here, because the last overflow is -1: grows at iterations 2 and 4.
  EXPECT_EQ(scales, (std::vector<double>{65536, 65536, 131072, 131072, 262144, 262144}));
}

TEST(LossScaler, Halves_when_the_hysteresis_is_used_up) {
  LossScaler scaler = LossScaler::of(dynamic_config({.hysteresis = 3}));
  std::vector<double> scales;
  for (int step = 0; step < 4; ++step) {
    scaler.update(true);
    scales.push_back(scaler.scale());
  }
  EXPECT_EQ(scales, (std::vector<double>{65536, 65536, 32768, 16384}));
}

TEST(LossScaler, Names_the_scale_when_it_cannot_shrink_E22) {
  LossScaler scaler = LossScaler::of(
      dynamic_config({.initial_scale_power = 1, .hysteresis = 1, .min_loss_scale = 1.5}));
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 1.5);
  try {
    scaler.update(true);
    FAIL() << "no error";
  } catch (const EngineError& error) {
    EXPECT_EQ(error.id(), EngineErrorId::overflow_at_minimum_scale);
    EXPECT_NE(std::string(error.what()).find("1.5"), std::string::npos) << error.what();
  }
}

TEST(LossScaler, Moves_the_autocast_scale_as_a_GradScaler) {
  ZeroConfig config;
  config.torch_autocast = {.enabled = true, .dtype = DType::float16};
  LossScaler scaler = LossScaler::of(config);
  EXPECT_EQ(scaler.kind(), LossScalerKind::grad_scaler);
  for (int step = 0; step < 1999; ++step) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 65536.0);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 131072.0);
  for (int step = 0; step < 1999; ++step) scaler.update(false);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 65536.0);
  for (int step = 0; step < 1999; ++step) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 65536.0) << "an overflow starts the interval anew";
}

TEST(LossScaler, Keeps_the_autocast_scale_finite_in_float32) {
  ZeroConfig config;
  config.torch_autocast = {.enabled = true, .dtype = DType::float16};
  LossScaler scaler = LossScaler::of(config);
  LossScaler::State state = scaler.state();
  state.scale = 0x1p127;
  state.growth_tracker = 1999;
  scaler.restore(state);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 0x1p127);
}

struct KindCase {
  const char* name;
  ZeroConfig config;
  LossScalerKind kind;
  double scale;
  bool is_dynamic;
  bool is_needed;           // exact: a static scale counts
  bool is_needed_upstream;  // H9
};

std::vector<KindCase> kind_cases() {
  ZeroConfig bf16;
  bf16.bf16.enabled = true;
  ZeroConfig autocast16;
  autocast16.torch_autocast = {.enabled = true, .dtype = DType::float16};
  ZeroConfig autocast_bf16;
  autocast_bf16.torch_autocast = {.enabled = true, .dtype = DType::bfloat16};
  ZeroConfig both = dynamic_config({.loss_scale = 8.0});
  both.torch_autocast = autocast16.torch_autocast;
  using enum LossScalerKind;
  return {
      {"float32", {}, none, 1.0, false, false, false},
      {"bf16", bf16, none, 1.0, false, false, false},
      {"bf16 autocast", autocast_bf16, none, 1.0, false, false, false},
      {"fp16", dynamic_config({}), dynamic, 65536.0, true, true, true},
      {"fp16 static", dynamic_config({.loss_scale = 128.0}), fixed, 128.0, false, true, false},
      {"fp16 autocast", autocast16, grad_scaler, 65536.0, true, true, true},
      {"GradScaler before fp16", both, grad_scaler, 65536.0, true, true, true},
  };
}

TEST(LossScaler, Takes_its_kind_from_the_configuration) {
  for (const KindCase& expected : kind_cases()) {
    SCOPED_TRACE(expected.name);
    const LossScaler scaler = LossScaler::of(expected.config);
    EXPECT_EQ(scaler.kind(), expected.kind);
    EXPECT_EQ(scaler.scale(), expected.scale);
    EXPECT_EQ(scaler.is_dynamic(), expected.is_dynamic);
    EXPECT_EQ(scaler.is_needed(true), expected.is_needed);
    EXPECT_EQ(scaler.is_needed(false), expected.is_needed_upstream);
  }
}

TEST(LossScaler, Prefers_a_given_factor_to_every_other_and_never_moves_it) {
  for (const KindCase& row : kind_cases()) {
    SCOPED_TRACE(row.name);
    for (const bool is_custom : {true, false}) {
      LossScaler scaler = LossScaler::of(row.config);
      ASSERT_TRUE(is_custom ? scaler.set_custom(6.0) : scaler.set_external(6.0));
      EXPECT_EQ(scaler.kind(), is_custom ? LossScalerKind::custom : LossScalerKind::external);
      for (int step = 0; step < 5000; ++step) scaler.update(step % 3 == 0);
      scaler.restore({.scale = 2.0});
      EXPECT_EQ(scaler.scale(), 6.0);
      EXPECT_TRUE(scaler.is_needed(false));
      EXPECT_FALSE(scaler.is_dynamic());
    }
  }
}

TEST(LossScaler, Refuses_a_factor_that_is_not_positive_and_finite) {
  constexpr double kInfiniteNorm = std::numeric_limits<double>::infinity();
  for (const double factor : {0.0, -1.0, kInfiniteNorm, std::nan("")}) {
    LossScaler scaler = LossScaler::of(dynamic_config({}));
    EXPECT_FALSE(scaler.set_custom(factor));
    EXPECT_FALSE(scaler.set_external(factor));
    EXPECT_EQ(scaler.scale(), 65536.0);
  }
}

TEST(LossScaler, Leaves_a_static_scale_alone) {
  LossScaler scaler = LossScaler::of(dynamic_config({.loss_scale = 128.0}));
  for (int step = 0; step < 3000; ++step) scaler.update(step % 2 == 0);
  EXPECT_EQ(scaler.scale(), 128.0);
}

}  // namespace
}  // namespace zeroproof

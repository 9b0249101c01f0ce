// Hazards of factors on gradients, each alone: right under `exact`, wrong as
// docs/reference/hazards.md says with the one quirk (H6, H7, H22, H26).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/quirk_effect.h"
#include "model/cpu_ops.h"
#include "tests/engine/support/one_quirk.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

double size_of(const std::vector<FullTensor>& tensors, const std::string& prefix = "") {
  double sum = 0.0;
  for (const FullTensor& tensor : tensors)
    if (tensor.name.starts_with(prefix))
      for (const double value : tensor.values) sum += std::abs(value);
  return sum;
}

double distance(const std::vector<FullTensor>& a, const std::vector<FullTensor>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].values.size(); ++j)
      sum += std::abs(a[i].values[j] - b.at(i).values[j]);
  return sum;
}

ZeroConfig sgd_config(int stage) {
  ZeroConfig config{.stage = stage, .gradient_clipping = 0.0};
  config.stage3_param_persistence_threshold = 0;
  config.optimizer.type = OptimizerType::sgd;
  config.optimizer.sgd.lr = 1.0;
  return config;
}

class ScalingHazard : public ::testing::TestWithParam<int> {
 protected:
  ZeroConfig config = sgd_config(GetParam());
};

// --- H6 ----------------------------------------------------------------------------------------

struct Growth {
  double moved = 0.0;  // by the step on which the scale grew
  double norm = 0.0;
};

Growth step_that_grows(const ZeroConfig& config, Quirks quirks) {
  Growth growth;
  HostWorld world({.world_size = 2});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    MlpModel model;
    auto engine = Engine::initialize(ag, model, config, runtime, {.quirks = quirks}).value();
    const Tensor x = ops.cast(filled({2, 4}, 0.1), DType::float16);
    engine->backward(engine->forward(x));
    engine->step();
    const double before = engine->loss_scale();
    const auto weights = engine->full_parameters();
    engine->backward(engine->forward(x));
    const StepOutcome outcome = engine->step();
    EXPECT_EQ(engine->loss_scale(), 2.0 * before);
    const double moved = distance(weights, engine->full_parameters());
    if (runtime.rank() == 0) growth = {moved, outcome.grad_norm.value()};
  });
  return growth;
}

TEST_P(ScalingHazard, H6_halves_the_gradient_of_a_step_on_which_the_scale_grows) {
  config.optimizer.sgd.lr = 0.125;
  config.fp16 = {.enabled = true, .initial_scale_power = 4, .loss_scale_window = 1};
  const Growth right = step_that_grows(config, {});
  const Growth wrong = step_that_grows(config, only(Quirk::h6_unscale_with_updated_scale));
  EXPECT_GT(right.moved, 0.0);
  EXPECT_NEAR(wrong.moved, right.moved / 2, 1e-6);
  // The reported norm: right in stages 1 and 2, halved in stage 3.
  EXPECT_NEAR(wrong.norm, config.stage == 3 ? right.norm / 2 : right.norm, 1e-9);
}

// --- H7 ----------------------------------------------------------------------------------------

ZeroConfig autocast_config(ZeroConfig config) {
  config.torch_autocast = {.enabled = true, .dtype = DType::float16};
  return config;
}

// So small that 65536 times its gradient is within float16.
Tensor small_loss(Engine& engine) {
  return mul(engine.autograd(), engine.forward(filled({2, 4}, 0.1)), 0x1p-6);
}

double moved_with_autocast(const ZeroConfig& config, Quirks quirks) {
  double moved = 0.0;
  HostWorld world({.world_size = 2});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    MlpModel model;
    auto engine = Engine::initialize(ag, model, config, runtime, {.quirks = quirks}).value();
    const auto before = engine->full_parameters();
    engine->backward(small_loss(*engine));
    EXPECT_LT(engine->step().grad_norm.value(), 1.0) << "nothing to clip";
    const double distance_moved = distance(before, engine->full_parameters());
    if (runtime.rank() == 0) moved = distance_moved;
  });
  return moved;
}

TEST_P(ScalingHazard, H7_clips_gradients_that_are_still_scaled) {
  config = autocast_config(config);
  config.gradient_clipping = 1.0;
  const double right = moved_with_autocast(config, {});
  EXPECT_GT(right, 0.001);
  EXPECT_LT(moved_with_autocast(config, only(Quirk::h7_autocast_clips_scaled)), right / 10);
}

// Scales of both ranks after a step. The last element of the second group's last parameter, which
// rank 1 owns in every stage, is infinite.
std::vector<double> scales_after_overflow(const ZeroConfig& config, Quirks quirks) {
  std::vector<double> scales(2);
  HostWorld world({.world_size = 2});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    MlpModel model;
    EngineOptions options{.quirks = quirks, .parameter_groups = std::vector<TensorList>(2)};
    Tensor last;
    for (const nn::NamedParameter& parameter : model.named_parameters()) {
      if (parameter.name == "l2.bias") last = parameter.tensor;
      options.parameter_groups[parameter.name.starts_with("l1") ? 0 : 1].push_back(
          parameter.tensor);
    }
    auto engine = Engine::initialize(ag, model, config, runtime, options).value();
    last.register_hook([](const Tensor& grad) {
      std::vector<double> values = grad.values();
      values.back() = std::numeric_limits<double>::infinity();
      return Tensor::of(values, grad.sizes(), grad.dtype());
    });
    engine->backward(small_loss(*engine));
    EXPECT_EQ(engine->step().has_overflow, quirks.is_empty() || runtime.rank() == 1);
    scales[static_cast<std::size_t>(runtime.rank())] = engine->loss_scale();
  });
  return scales;
}

TEST_P(ScalingHazard, H7_lets_every_rank_and_group_decide_about_overflow_alone) {
  config = autocast_config(config);
  const std::vector<double> right = scales_after_overflow(config, {});
  EXPECT_EQ(right, (std::vector<double>{32768.0, 32768.0}));
  const std::vector<double> wrong =
      scales_after_overflow(config, only(Quirk::h7_autocast_clips_scaled));
  EXPECT_EQ(wrong, (std::vector<double>{65536.0, 32768.0}));
}

// --- H22, H26 ----------------------------------------------------------------------------------

struct SideSums {
  double a = 0.0;
  double b = 0.0;
};

using SideProgram = std::function<void(Engine& engine, SidePathModel& model, const Tensor& x)>;

SideSums gradients_of(ZeroConfig config, Quirks quirks, const SideProgram& program) {
  config.optimizer.sgd.lr = 0.0;
  SideSums sums;
  HostWorld world({.world_size = 2});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    SidePathModel model;
    auto engine = Engine::initialize(ag, model, config, runtime, {.quirks = quirks}).value();
    // Two micro-batches, so that the window is reduced.
    for (int micro = 0; micro < 2; ++micro) {
      program(*engine, model, filled({2, 4}, 0.1));
      if (micro == 0) engine->step();
    }
    const auto gradients = engine->full_gradients();
    if (runtime.rank() == 0) sums = {size_of(gradients, "a."), size_of(gradients, "b.")};
  });
  return sums;
}

TEST_P(ScalingHazard, H22_gives_a_loss_beside_the_outputs_no_accumulation_factor) {
  const SideProgram program = [](Engine& engine, SidePathModel& model, const Tensor& x) {
    Autograd& ag = engine.autograd();
    engine.backward(mean_square(ag, (*model.b)(ag, x)));
  };
  const SideSums one = gradients_of(config, {}, program);
  config.gradient_accumulation_steps = 2;
  const SideSums right = gradients_of(config, {}, program);
  const SideSums wrong =
      gradients_of(config, only(Quirk::h22_explicit_epilogue_without_prologue), program);
  EXPECT_GT(right.b, 0.0);
  EXPECT_NEAR(right.b, one.b, 1e-6) << "the mean of two equal micro-batches is one of them";
  EXPECT_NEAR(wrong.b, 2.0 * right.b, 1e-6);
}

TEST_P(ScalingHazard, H26_forgets_hooks_that_fire_before_the_prologue_of_their_backward) {
  const SideProgram program = [](Engine& engine, SidePathModel& model, const Tensor& x) {
    Autograd& ag = engine.autograd();
    const Tensor loss = engine.forward(x);
    ag.backward(add(ag, loss, mean_square(ag, (*model.b)(ag, x))));
  };
  config.gradient_accumulation_steps = 2;
  const SideSums right = gradients_of(config, {}, program);
  const SideSums wrong =
      gradients_of(config, only(Quirk::h26_hooks_before_prologue_recounted), program);
  EXPECT_GT(right.b, 0.0);
  EXPECT_NEAR(wrong.a, right.a, 1e-6);
  EXPECT_NEAR(wrong.b, 2.0 * right.b, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Stages, ScalingHazard, ::testing::Values(1, 2, 3));

// --- what has no effect ------------------------------------------------------------------------

TEST(QuirkEffect, Is_missing_where_the_stage_or_an_option_is_another) {
  const auto why = [](Quirk quirk, const ZeroConfig& config, std::string_view policy = "exact") {
    return why_without_effect(quirk, {.config = config, .policy = policy});
  };
  EXPECT_EQ(why(Quirk::h16_partition_never_cleared, {.stage = 3}), "");
  EXPECT_EQ(why(Quirk::h16_partition_never_cleared, {.stage = 2}),
            "has no effect in stage 2: it is of stage 3");
  EXPECT_EQ(why(Quirk::h4_boundary_overwrites_average, {.stage = 3}),
            "has no effect in stage 3: it is of stages 1 to 2");
  EXPECT_EQ(why(Quirk::h19_reuse_waits_current_stream, {.stage = 2}),
            "has no effect here: it shows with overlap_comm");
  EXPECT_EQ(why(Quirk::h20_any_forward_resets_step, {.stage = 2}), "");
  EXPECT_NE(why(Quirk::h20_any_forward_resets_step, {.stage = 2}, "deepspeed-0.18.7"), "");
  EXPECT_EQ(why(Quirk::n5_zero_grad_keeps_partition, {.stage = 3}),
            "has no effect in stage 3: it is of stages 1 to 2");
  EXPECT_EQ(why(Quirk::n5_zero_grad_keeps_partition, {.stage = 2}),
            "has no effect here: it shows with a 16-bit model that accumulates in float32");
  EXPECT_EQ(why(Quirk::n8_unmanaged_offload_repeats, {.stage = 2}),
            "has no effect here: it shows with offload_optimizer and unmanaged accumulation");
  EXPECT_EQ(notes_on(Quirks::parse("h3,h16,h1").value(), {.config = {.stage = 2}}),
            (std::vector<std::string>{"quirk h3 (micro_step_counts_forwards) has no effect in "
                                      "stage 2: it is of stage 3",
                                      "quirk h16 (partition_never_cleared) has no effect in "
                                      "stage 2: it is of stage 3"}));
}

TEST(QuirkEffect, Of_a_proposal_needs_the_policy_of_the_proposal) {
  const Quirks quirks = only(Quirk::h23_stale_callback_flag_retained);
  EXPECT_TRUE(check_quirks(quirks, "exact"));
  EXPECT_TRUE(check_quirks(quirks, "x2"));
  EXPECT_TRUE(check_quirks(Quirks::upstream(), "deepspeed-0.18.7"));
  HostWorld world({});
  const CpuOps ops;
  Autograd ag(ops);
  MlpModel model;
  const auto engine = Engine::initialize(ag, model, {.stage = 2}, world.runtime(0),
                                         {.policy = "deepspeed-0.18.7", .quirks = quirks});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::usage);
  EXPECT_NE(
      engine.error().text.find("h23 (stale_callback_flag_retained) under policy deepspeed-0.18.7"),
      std::string::npos)
      << engine.error().text;
}

}  // namespace
}  // namespace zeroproof

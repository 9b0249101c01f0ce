// Master weights and dtypes of optimizer states: every combination against the rows of
// docs/spec/zero.md 6.2, each written as a rule of its own.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "zeroproof/engine/zero_config.h"

namespace zeroproof {
namespace {

constexpr double kOverflowed = std::numeric_limits<double>::infinity();

void expect_refused(const ZeroConfig& config, const std::string& part) {
  const auto valid = validate(config);
  ASSERT_FALSE(valid);
  EXPECT_NE(valid.error().text.find(part), std::string::npos) << valid.error().text;
}

ZeroConfig offloaded(int stage) {
  ZeroConfig config;
  config.stage = stage;
  config.offload_optimizer = OffloadDevice::cpu;
  return config;
}

ZeroConfig with_fp16_master(ZeroConfig config) {
  config.fp16 = {.enabled = true, .master_weights_and_grads = true};
  return config;
}

ZeroConfig with_bf16_master(ZeroConfig config) {
  config.bf16 = {.enabled = true, .master_weights_and_grads = true};
  return config;
}

TEST(DtypeRules, Row_1_master_weights_and_states_only_with_ZeRO) {
  ZeroConfig plain;
  expect_refused(with_fp16_master(plain),
                 "fp16_master_weights_and_grads is only supported with ZeRO stage 1, 2, or 3");
  expect_refused(with_bf16_master(plain),
                 "bf16_master_weights_and_grads is only supported with ZeRO stage 1, 2, or 3");
  plain.bf16 = {.enabled = true, .optimizer_states = true};
  expect_refused(plain, "bf16_optimizer_states is only supported with ZeRO stage 1, 2, or 3");
  for (const int stage : {1, 2, 3}) {
    EXPECT_TRUE(validate(with_fp16_master(offloaded(stage))));
    EXPECT_TRUE(validate(with_bf16_master(offloaded(stage))));
  }
}

TEST(DtypeRules, Row_2_bf16_states_require_bf16_master_weights) {
  ZeroConfig config;
  config.stage = 2;
  config.bf16 = {.enabled = true, .optimizer_states = true};
  expect_refused(config, "bf16_optimizer_states requires bf16_master_weights_and_grads");
}

TEST(DtypeRules, Row_3_master_weights_are_of_one_dtype) {
  ZeroConfig config = with_fp16_master(offloaded(2));
  config.bf16.master_weights_and_grads = true;
  expect_refused(config, "exclude each other");
}

TEST(DtypeRules, Row_4_fp16_master_weights_require_the_offloaded_CPU_Adam) {
  const std::string part = "fp16_master_weights_and_grads requires offload_optimizer and the CPU";
  ZeroConfig config = with_fp16_master(offloaded(2));
  config.offload_optimizer = OffloadDevice::none;
  expect_refused(config, part);
  config = with_fp16_master(offloaded(2));
  config.zero_force_ds_cpu_optimizer = false;
  config.optimizer.is_torch_class = true;
  expect_refused(config, part);
  config.optimizer = {.type = OptimizerType::sgd};
  expect_refused(config, part);
}

TEST(DtypeRules, Row_5_bf16_master_weights_require_it_too_unless_states_are_bf16_on_the_device) {
  const std::string part = "bf16_master_weights_and_grads requires offload_optimizer";
  ZeroConfig config;
  config.stage = 2;
  expect_refused(with_bf16_master(config), part);
  config = with_bf16_master(config);
  config.bf16.optimizer_states = true;
  EXPECT_TRUE(validate(config));
  config.offload_optimizer = OffloadDevice::cpu;
  EXPECT_TRUE(validate(config));
  config.zero_force_ds_cpu_optimizer = false;
  config.optimizer.type = OptimizerType::sgd;
  expect_refused(config, part);
}

// Row 6: with offload, bf16 states are those of our own CPU Adam, which has no fp32 switch.
TEST(DtypeRules, Row_6_the_CPU_Adams_fp32_states_are_not_asked_for) {
  const auto parsed = parse_ds_config(
      R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true,
                   "bf16_optimizer_states": true},
          "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
          "optimizer": {"type": "Adam", "params": {"fp32_optimizer_states": true}}})",
      "in");
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(parsed->ignored, std::vector<std::string>{"/optimizer/params/fp32_optimizer_states"});
  EXPECT_TRUE(validate(parsed->config));
  EXPECT_TRUE(parsed->config.bf16.optimizer_states);
}

TEST(DtypeRules, Row_7_the_master_dtype_follows) {
  EXPECT_EQ(with_fp16_master(offloaded(1)).master_dtype(), DType::float16);
  EXPECT_EQ(with_bf16_master(offloaded(1)).master_dtype(), DType::bfloat16);
  ZeroConfig config;
  EXPECT_EQ(config.master_dtype(), DType::float32);
  config.fp16.enabled = true;
  EXPECT_EQ(config.master_dtype(), DType::float32);
  EXPECT_EQ(config.model_dtype(), DType::float16);
  config.fp16.enabled = false;
  config.bf16.enabled = true;
  EXPECT_EQ(config.master_dtype(), DType::float32);
  EXPECT_EQ(config.model_dtype(), DType::bfloat16);
}

TEST(DtypeRules, Row_8_param_dtype_equals_the_mode) {
  constexpr DType kModes[] = {DType::float32, DType::bfloat16, DType::float16};
  for (const DType mode : kModes) {
    for (const DType given : kModes) {
      ZeroConfig config;
      config.fp16.enabled = mode == DType::float16;
      config.bf16.enabled = mode == DType::bfloat16;
      config.param_dtype = given;
      EXPECT_EQ(validate(config).has_value(), given == mode);
      if (given != mode) expect_refused(config, "/data_types/param_dtype is ");
    }
  }
}

TEST(DtypeRules, Row_9_a_static_scale_is_finite_and_not_negative) {
  ZeroConfig config;
  config.fp16.enabled = true;
  for (const double scale : {0.0, 0.5, 1.0, 65536.0}) {
    config.fp16.loss_scale = scale;
    EXPECT_TRUE(validate(config)) << scale;
  }
  for (const double scale : {-1.0, kOverflowed, -kOverflowed, std::nan("")}) {
    config.fp16.loss_scale = scale;
    expect_refused(config, "/fp16/loss_scale is ");
  }
}

// The rows again, as one predicate over all 768 combinations of what they speak of.
TEST(DtypeRules, Together_admit_exactly_what_the_rows_admit) {
  int admitted = 0;
  for (int bits = 0; bits < 768; ++bits) {
    ZeroConfig config;
    config.stage = bits % 4;
    const bool has_fp16 = config.fp16.master_weights_and_grads = (bits & 4) != 0;
    const bool has_bf16 = config.bf16.master_weights_and_grads = (bits & 8) != 0;
    const bool has_states = config.bf16.optimizer_states = (bits & 16) != 0;
    const bool is_offloaded = (bits & 32) != 0;
    config.zero_force_ds_cpu_optimizer = (bits & 64) != 0;
    config.optimizer.is_torch_class = (bits & 128) != 0;
    config.optimizer.type = static_cast<OptimizerType>(bits / 256);
    if (is_offloaded) config.offload_optimizer = OffloadDevice::cpu;

    const bool is_zero = config.stage > 0;
    const bool is_cpu_class =
        config.optimizer.type != OptimizerType::sgd && !config.optimizer.is_torch_class;
    const bool rows = (is_zero || !(has_fp16 || has_bf16 || has_states)) &&  // 1
                      (has_bf16 || !has_states) &&                           // 2
                      !(has_fp16 && has_bf16) &&                             // 3
                      (!has_fp16 || (is_offloaded && is_cpu_class)) &&       // 4
                      (!has_bf16 || (has_states && !is_offloaded) ||         // 5
                       (is_offloaded && is_cpu_class));
    const bool offload =
        !is_offloaded || (is_zero && (is_cpu_class ||  // offload_of_unsupported_optimizer
                                      !config.zero_force_ds_cpu_optimizer));
    EXPECT_EQ(validate(config).has_value(), rows && offload) << bits;
    if (rows && offload) ++admitted;
  }
  EXPECT_GT(admitted, 100);
}

TEST(DtypeRules, Sizes_built_by_hand_are_checked_as_well) {
  ZeroConfig config;
  config.stage = 4;
  expect_refused(config, "/zero_optimization/stage is 4");
  config = {};
  config.reduce_bucket_size = -1;
  expect_refused(config, "has a size of -1");
  config = {};
  config.gradient_accumulation_steps = 0;
  expect_refused(config, "/gradient_accumulation_steps is 0");
  config = {};
  config.gradient_clipping = std::nan("");
  expect_refused(config, "/gradient_clipping is nan");
  config = {};
  config.stage = 2;
  config.communication_data_type = DType::float64;
  expect_refused(config, "reduce_scatter_dtype_unsupported: reduce_scatter with ZeRO stage 2");
  config.reduce_scatter = false;
  EXPECT_TRUE(validate(config));
  config = {};
  config.stage = 1;
  config.allgather_bucket_size = 0;
  expect_refused(config, "allgather_bucket_size is 0");
  config = {};
  config.stage = 3;
  config.sub_group_size = 0;
  expect_refused(config, "sub_group_size is 0");
}

}  // namespace
}  // namespace zeroproof

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "engine/precision/module_classes.h"
#include "engine/schedule/rate_schedule.h"
#include "model/nearest_name.h"
#include "zeroproof/engine/zero_config.h"

namespace zeroproof {
namespace {

// A finding in words, or empty. Each check is one noun of the configuration.
using Finding = std::string;

bool is_partitioned(const ZeroConfig& config) {
  return config.stage >= 1;
}

bool has_cpu_adam(const ZeroConfig& config) {
  const OptimizerConfig& optimizer = config.optimizer;
  return config.is_offloaded() && optimizer.type != OptimizerType::sgd && !optimizer.is_torch_class;
}

Finding check_sizes(const ZeroConfig& config) {
  if (config.stage < 0 || config.stage > 3) {
    return fmt::format("/zero_optimization/stage is {}; give 0 to 3", config.stage);
  }
  if (config.gradient_accumulation_steps < 1 || config.train_micro_batch_size_per_gpu < 1) {
    return fmt::format(
        "/gradient_accumulation_steps is {} and /train_micro_batch_size_per_gpu {}; "
        "both are at least 1",
        config.gradient_accumulation_steps, config.train_micro_batch_size_per_gpu);
  }
  const std::int64_t sizes[] = {config.reduce_bucket_size,
                                config.allgather_bucket_size,
                                config.stage3_prefetch_bucket_size,
                                config.stage3_param_persistence_threshold,
                                config.stage3_model_persistence_threshold,
                                config.stage3_max_live_parameters,
                                config.stage3_max_reuse_distance,
                                config.stage3_module_granularity_threshold};
  for (const std::int64_t size : sizes) {
    if (size < 0) return fmt::format("/zero_optimization has a size of {}; none is negative", size);
  }
  if (config.stage == 3 && config.sub_group_size < 1) {
    return fmt::format(
        "/zero_optimization/sub_group_size is {}; stage 3 updates at least 1 element "
        "at a time",
        config.sub_group_size);
  }
  return {};
}

Finding check_numbers(const ZeroConfig& config) {
  if (!std::isfinite(config.gradient_clipping) || config.gradient_clipping < 0.0) {
    return fmt::format("/gradient_clipping is {}; give a finite number, 0 for none",
                       config.gradient_clipping);
  }
  const double factor = config.gradient_predivide_factor;
  if (!std::isfinite(factor) || factor <= 0.0) {
    return fmt::format("/gradient_predivide_factor is {}; give a positive, finite number", factor);
  }
  return {};
}

// odd_allgather_bucket_size: slices begin on multiples of two elements.
Finding check_allgather(const ZeroConfig& config) {
  if (config.stage != 1 && config.stage != 2) return {};
  const std::int64_t size = config.allgather_bucket_size;
  if (size % 2 != 0) {
    return fmt::format(
        "odd_allgather_bucket_size: allgather_bucket_size must be a multiple of "
        "nccl_start_alignment_factor, 2; /zero_optimization/allgather_bucket_size "
        "is {}",
        size);
  }
  if (size == 0) return "/zero_optimization/allgather_bucket_size is 0; no gather would fit";
  return {};
}

Finding check_accumulation(const ZeroConfig& config) {
  if (config.managed_gradient_accumulation || !config.has_overlap_comm()) return {};
  if (config.stage >= 2) return {};
  return fmt::format(
      "unsupported_combination: managed_gradient_accumulation: false supports overlap_comm only "
      "with "
      "ZeRO stage 2 and 3; /zero_optimization/stage is {}: switch one of them off",
      config.stage);
}

Finding check_reduction(const ZeroConfig& config) {
  const bool is_mean = config.gradient_allreduce_op == GradientAllreduceOp::mean;
  if (!is_mean && config.stage == 3) {
    return "sum_reduction_unsupported: gradient_allreduce_op: sum is not supported with ZeRO stage "
           "3; use mean";
  }
  if (!config.reduce_scatter || config.stage < 2) return {};
  if (config.stage == 2 && config.communication_dtype() == DType::float64) {
    return "reduce_scatter_dtype_unsupported: reduce_scatter with ZeRO stage 2 communicates in "
           "fp16, bf16 or fp32, not float64";
  }
  const bool is_plain = config.gradient_predivide_factor == 1.0 && !config.prescale_gradients;
  if (is_plain || (config.stage == 2 && !is_mean)) return {};
  return fmt::format(
      "reduce_scatter_with_prescaling: reduce_scatter with ZeRO stage {} supports neither "
      "gradient_predivide_factor ({}) nor prescale_gradients ({}); switch "
      "reduce_scatter off",
      config.stage, config.gradient_predivide_factor, config.prescale_gradients);
}

Finding check_offload(const ZeroConfig& config) {
  if (config.offload_param != OffloadDevice::none && config.stage != 3) {
    return fmt::format("/zero_optimization/offload_param is valid only with stage 3, not {}",
                       config.stage);
  }
  if (!config.is_offloaded()) return {};
  if (!is_partitioned(config)) {
    return "/zero_optimization/offload_optimizer is valid only with stages 1, 2 and 3, not 0";
  }
  if (has_cpu_adam(config) || !config.zero_force_ds_cpu_optimizer) return {};
  return "offload_of_unsupported_optimizer: offload_optimizer wants the CPU Adam (Adam or AdamW "
         "without torch_adam); change "
         "/optimizer/type, or set zero_force_ds_cpu_optimizer: false";
}

Finding check_modes(const ZeroConfig& config) {
  const bool has_fp16 = config.fp16.enabled;
  const bool has_bf16 = config.bf16.enabled;
  if (has_fp16 && has_bf16) return "fp16 and bf16 cannot both be enabled; switch one off";
  if (config.torch_autocast.enabled && (has_fp16 || has_bf16)) {
    return fmt::format("torch_autocast together with {} is not modelled; switch one off",
                       has_fp16 ? "fp16" : "bf16");
  }
  if (config.param_dtype && *config.param_dtype != config.model_dtype()) {
    return fmt::format(
        "/data_types/param_dtype is {}, but the enabled mode makes {}; they must be "
        "equal",
        dtype_name(*config.param_dtype), dtype_name(config.model_dtype()));
  }
  return {};
}

Finding check_loss_scale(const ZeroConfig& config) {
  const Fp16Config& fp16 = config.fp16;
  if (!std::isfinite(fp16.loss_scale) || fp16.loss_scale < 0.0) {
    return fmt::format("/fp16/loss_scale is {}; give a finite number of at least 0 (0 is dynamic)",
                       fp16.loss_scale);
  }
  if (fp16.loss_scale_window < 1 || fp16.hysteresis < 1) {
    return fmt::format("/fp16/loss_scale_window is {} and /fp16/hysteresis {}; both are at least 1",
                       fp16.loss_scale_window, fp16.hysteresis);
  }
  const double first = std::ldexp(1.0, fp16.initial_scale_power);
  const bool is_minimum = std::isfinite(fp16.min_loss_scale) && fp16.min_loss_scale > 0.0;
  if (!std::isfinite(first) || !is_minimum || (fp16.enabled && fp16.min_loss_scale > first)) {
    return fmt::format(
        "/fp16/min_loss_scale is {}; give a positive number of at most the first "
        "scale, 2^{}",
        fp16.min_loss_scale, fp16.initial_scale_power);
  }
  return {};
}

Finding check_stage_of_master_weights(const ZeroConfig& config) {
  if (is_partitioned(config)) return {};
  const std::pair<bool, std::string_view> settings[] = {
      {config.fp16.master_weights_and_grads, "fp16_master_weights_and_grads"},
      {config.bf16.master_weights_and_grads, "bf16_master_weights_and_grads"},
      {config.bf16.optimizer_states, "bf16_optimizer_states"}};
  for (const auto& [is_on, name] : settings)
    if (is_on) return fmt::format("{} is only supported with ZeRO stage 1, 2, or 3, not 0", name);
  return {};
}

// docs/spec/zero.md 6.2, rows 1 to 6.
Finding check_master_weights(const ZeroConfig& config) {
  const bool has_fp16 = config.fp16.master_weights_and_grads;
  const bool has_bf16 = config.bf16.master_weights_and_grads;
  const bool has_states = config.bf16.optimizer_states;
  if (Finding problem = check_stage_of_master_weights(config); !problem.empty()) return problem;
  if (has_states && !has_bf16) {
    return "bf16_optimizer_states requires bf16_master_weights_and_grads; switch that on too";
  }
  if (has_fp16 && has_bf16) {
    return "fp16_master_weights_and_grads and bf16_master_weights_and_grads exclude each other";
  }
  if (has_fp16 && !has_cpu_adam(config)) {
    return "fp16_master_weights_and_grads requires offload_optimizer and the CPU Adam";
  }
  const bool is_on_device = has_states && !config.is_offloaded();
  if (has_bf16 && !is_on_device && !has_cpu_adam(config)) {
    return "bf16_master_weights_and_grads requires offload_optimizer and the CPU Adam, or "
           "bf16_optimizer_states without offload";
  }
  return {};
}

Finding check_scheduler(const ZeroConfig& config) {
  return config.scheduler ? problem_of(*config.scheduler) : Finding();
}

Finding check_safe_modules(const ZeroConfig& config) {
  const auto& modules = config.torch_autocast.lower_precision_safe_modules;
  if (!config.torch_autocast.enabled || !modules) return {};
  for (const std::string& name : *modules) {
    if (is_importable_class(name)) continue;
    return fmt::format(
        "/torch_autocast/lower_precision_safe_modules has '{}', which cannot be "
        "imported; {}",
        name, did_you_mean(name, importable_classes()));
  }
  return {};
}

}  // namespace

DType ZeroConfig::model_dtype() const {
  if (fp16.enabled) return DType::float16;
  return bf16.enabled ? DType::bfloat16 : DType::float32;
}

DType ZeroConfig::master_dtype() const {
  if (fp16.master_weights_and_grads) return DType::float16;
  return bf16.master_weights_and_grads ? DType::bfloat16 : DType::float32;
}

Result<void> validate(const ZeroConfig& config) {
  constexpr Finding (*kChecks[])(const ZeroConfig&) = {
      check_sizes,          check_numbers,      check_modes,     check_loss_scale,
      check_accumulation,   check_allgather,    check_reduction, check_offload,
      check_master_weights, check_safe_modules, check_scheduler};
  for (const auto check : kChecks) {
    Finding finding = check(config);
    if (!finding.empty()) return fail(ErrorCode::usage, std::move(finding));
  }
  return {};
}

}  // namespace zeroproof

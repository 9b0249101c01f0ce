#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/config/ds_config.h"
#include "engine/config/json_value.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kLeastAllgather = 2;  // odd_allgather_bucket_size: a multiple of two

// One for each of the three sizes that the document leaves open.
void note_batch_sizes(const DsConfig& document, std::int64_t ranks, RunConfig& run) {
  const BatchSizes& given = document.parsed.batch_sizes;
  const std::int64_t micro = run.config.train_micro_batch_size_per_gpu;
  const std::int64_t steps = run.config.gradient_accumulation_steps;
  const struct {
    std::string_view name;
    bool is_given;
    std::int64_t became;
  } sizes[] = {
      {"train_batch_size", given.train_batch_size.has_value(), micro * steps * ranks},
      {"train_micro_batch_size_per_gpu", given.train_micro_batch_size_per_gpu.has_value(), micro},
      {"gradient_accumulation_steps", given.gradient_accumulation_steps.has_value(), steps}};
  const auto& automatic = document.automatic_sizes;
  for (const auto& size : sizes) {
    if (size.is_given) continue;
    const bool is_auto = std::ranges::find(automatic, size.name) != automatic.end();
    run.notes.push_back({is_auto ? ConfigNoteKind::automatic : ConfigNoteKind::batch_size,
                         json_pointer("", size.name), fmt::format("{}", size.became)});
  }
}

// DeepSpeed accepts these and does not use them.
void leave_out_unused(const DsConfig& document, RunConfig& run) {
  ZeroConfig& config = run.config;
  if (config.offload_param != OffloadDevice::none && config.stage != 3) {
    config.offload_param = OffloadDevice::none;
    run.notes.push_back(
        {ConfigNoteKind::without_effect, "/zero_optimization/offload_param",
         fmt::format("offloads in stage 3 alone, and this is stage {}", config.stage)});
  }
  if (config.is_offloaded() && config.stage == 0) {
    config.offload_optimizer = OffloadDevice::none;
    run.notes.push_back({ConfigNoteKind::without_effect, "/zero_optimization/offload_optimizer",
                         "offloads in stages 1, 2 and 3, and this is stage 0"});
  }
  if (config.allgather_bucket_size == 0 && (config.stage == 1 || config.stage == 2)) {
    config.allgather_bucket_size = kLeastAllgather;
    run.notes.push_back({ConfigNoteKind::converted, "/zero_optimization/allgather_bucket_size",
                         fmt::format("0 taken as {}", kLeastAllgather)});
  }
  // The demand for the CPU Adam is on optimizers that the caller hands over.
  if (document.names_optimizer) config.zero_force_ds_cpu_optimizer = false;
}

Result<void> check_grad_norm(const ZeroConfig& config) {
  constexpr std::string_view kOff = "/zero_optimization/compute_grad_norm is false";
  if (config.stage != 1 && config.stage != 2) {
    return fail(ErrorCode::usage,
                fmt::format("{}, and this is stage {}: only stages 1 and 2 support it", kOff,
                            config.stage));
  }
  if (config.gradient_clipping > 0.0) {
    return fail(ErrorCode::usage,
                fmt::format("{}, but clipping needs the norm: set /gradient_clipping, {}, to 0",
                            kOff, config.gradient_clipping));
  }
  if (config.is_offloaded()) {
    return fail(ErrorCode::usage,
                fmt::format("{}, which offload_optimizer does not support", kOff));
  }
  const bool is_mixed =
      config.model_dtype() == DType::bfloat16 && config.accumulation_dtype() == DType::float32;
  if (config.stage != 1 || !is_mixed) return {};
  return fail(
      ErrorCode::usage,
      fmt::format("{}, which stage 1 does not support for bf16 with float32 accumulation", kOff));
}

// ZeRO knows the Adams as tested.
Result<void> check_tested_optimizer(const DsConfig& document, const ZeroConfig& config) {
  const bool is_tested = config.optimizer.type != OptimizerType::sgd;
  const bool is_asked = document.names_optimizer && config.stage > 0;
  if (is_tested || !is_asked || document.allows_untested_optimizer) return {};
  return fail(ErrorCode::usage,
              "/optimizer/type is \"SGD\", which ZeRO counts as untested; set "
              "/zero_allow_untested_optimizer: true");
}

Result<void> check_min_loss_scale(const ZeroConfig& config) {
  const double least = config.fp16.min_loss_scale;
  if (least == std::trunc(least)) return {};
  return fail(ErrorCode::usage,
              fmt::format("/fp16/min_loss_scale is {}; give a whole number", least));
}

Result<void> check_offload_ratio(const DsConfig& document, const ZeroConfig& config) {
  if (document.offload_ratio >= 1.0 || config.stage == 3) return {};
  return fail(ErrorCode::usage,
              fmt::format("/zero_optimization/offload_optimizer/ratio is {}: only stage 3 offloads "
                          "a part, and this is stage {}",
                          document.offload_ratio, config.stage));
}

// Stage 0 wraps the optimizer by the model's dtype, which has to be that of accumulation too.
Result<void> check_accumulation_dtype(const ZeroConfig& config) {
  if (config.stage != 0 || config.accumulation_dtype() == config.model_dtype()) return {};
  return fail(
      ErrorCode::usage,
      fmt::format("/data_types/grad_accum_dtype is {}, and the model's dtype {}: stage 0 "
                  "wants them equal",
                  dtype_name(config.accumulation_dtype()), dtype_name(config.model_dtype())));
}

}  // namespace

Result<RunConfig> run_config_of(const DsConfig& document, std::int64_t data_parallel_size,
                                int stage) {
  auto sized = with_batch_sizes(document.parsed, data_parallel_size);
  if (!sized) return tl::unexpected(sized.error());
  RunConfig run{.config = std::move(*sized), .notes = document.notes};
  if (stage != kDocumentsStage) run.config.stage = stage;
  note_batch_sizes(document, data_parallel_size, run);
  leave_out_unused(document, run);
  return validate(run.config)
      .and_then([&] { return check_accumulation_dtype(run.config); })
      .and_then([&] { return check_offload_ratio(document, run.config); })
      .and_then([&] { return check_tested_optimizer(document, run.config); })
      .and_then([&] { return check_min_loss_scale(run.config); })
      .and_then([&]() -> Result<void> {
        return document.computes_grad_norm ? Result<void>() : check_grad_norm(run.config);
      })
      .map([&] { return std::move(run); });
}

}  // namespace zeroproof

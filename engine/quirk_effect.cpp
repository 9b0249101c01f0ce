#include "engine/quirk_effect.h"

#include <fmt/format.h>

namespace zeroproof {
namespace {

// A row for each hazard of docs/reference/hazards.md: which stages, and what else has to be there.
struct Needs {
  int first_stage = 0;
  int last_stage = 3;
  const char* option = nullptr;  // what has to be on, for the message
  bool (*has_option)(const QuirkSetting&) = nullptr;
};

bool has_overlap(const QuirkSetting& it) {
  return it.config.has_overlap_comm();
}
bool is_offloaded(const QuirkSetting& it) {
  return it.config.is_offloaded();
}
bool is_managed_offload(const QuirkSetting& it) {
  return it.config.is_offloaded() && it.config.managed_gradient_accumulation;
}
bool is_fp16(const QuirkSetting& it) {
  return it.config.fp16.enabled;
}
bool is_static_fp16(const QuirkSetting& it) {
  return it.config.fp16.enabled && it.config.fp16.loss_scale != 0.0;
}
bool is_fp16_autocast(const QuirkSetting& it) {
  return it.config.torch_autocast.enabled && it.config.torch_autocast.dtype == DType::float16;
}
bool is_dynamic(const QuirkSetting& it) {
  return is_fp16_autocast(it) || (it.config.fp16.enabled && it.config.fp16.loss_scale == 0.0);
}
bool is_unmanaged_offload(const QuirkSetting& it) {
  return it.config.is_offloaded() && !it.config.managed_gradient_accumulation;
}
bool accumulates_wide(const QuirkSetting& it) {
  return it.config.has_float32_partition();
}
bool accumulates(const QuirkSetting& it) {
  return it.config.gradient_accumulation_steps > 1;
}
bool is_sequence_parallel(const QuirkSetting& it) {
  return it.sequence_ranks > 1 && it.config.reduce_scatter;
}
bool is_exact(const QuirkSetting& it) {
  return it.policy == "exact";
}
bool is_upstream_policy(const QuirkSetting& it) {
  return it.policy != "exact";
}

constexpr const char* kExactAlone = "under policy exact alone; the others are so by themselves";

// What releases after 0.19.5 brought.
Needs needs_of_regression(Quirk quirk) {
  switch (quirk) {
    case Quirk::n4_overflow_keeps_scale:
      return {.first_stage = 1, .option = "with float16 autocast", .has_option = is_fp16_autocast};
    case Quirk::n5_zero_grad_keeps_partition:
      return {.first_stage = 1,
              .last_stage = 2,
              .option = "with a 16-bit model that accumulates in float32",
              .has_option = accumulates_wide};
    case Quirk::n6_divides_by_running_engine:
      return {.first_stage = 1};
    case Quirk::n8_unmanaged_offload_repeats:
      return {.first_stage = 1,
              .last_stage = 2,
              .option = "with offload_optimizer and unmanaged accumulation",
              .has_option = is_unmanaged_offload};
    default:
      return {};
  }
}

Needs needs_of_scaling(Quirk quirk) {
  switch (quirk) {
    case Quirk::h5_stage0_fp16_loss_unscaled:
      return {.last_stage = 0, .option = "with fp16", .has_option = is_fp16};
    case Quirk::h6_unscale_with_updated_scale:
      return {.option = "with a dynamic loss scale", .has_option = is_dynamic};
    case Quirk::h7_autocast_clips_scaled:
      return {.first_stage = 1, .option = "with float16 autocast", .has_option = is_fp16_autocast};
    case Quirk::h8_divides_at_outputs:
    case Quirk::h22_explicit_epilogue_without_prologue:
      return {.option = "with gradient_accumulation_steps above 1", .has_option = accumulates};
    case Quirk::h9_static_scale_needs_no_scaler:
      return {.option = "with a static fp16 loss scale", .has_option = is_static_fp16};
    case Quirk::h26_hooks_before_prologue_recounted:
      return {.first_stage = 1,
              .option = "with gradient_accumulation_steps above 1",
              .has_option = accumulates};
    default:
      return needs_of_regression(quirk);
  }
}

Needs needs_of_stages_1_and_2(Quirk quirk) {
  switch (quirk) {
    case Quirk::h4_boundary_overwrites_average:
      return {.first_stage = 1, .last_stage = 2};
    case Quirk::h14_overlap_boundary_hooks_only:
      return {.first_stage = 1,
              .last_stage = 1,
              .option = "with overlap_comm",
              .has_option = has_overlap};
    case Quirk::h15_offload_never_cleared:
      return {.first_stage = 1,
              .last_stage = 2,
              .option = "with offload_optimizer",
              .has_option = is_offloaded};
    case Quirk::h21_offload_copies_boundary_only:
      return {.first_stage = 1,
              .option = "with offload_optimizer and managed accumulation",
              .has_option = is_managed_offload};
    case Quirk::h19_reuse_waits_current_stream:
      return {.first_stage = 1, .option = "with overlap_comm", .has_option = has_overlap};
    default:
      return needs_of_scaling(quirk);
  }
}

Needs needs_of(Quirk quirk) {
  switch (quirk) {
    case Quirk::h2_callback_once_per_forward:
    case Quirk::h20_any_forward_resets_step:
    case Quirk::h23_stale_callback_flag_retained:
      return {.first_stage = 1, .option = kExactAlone, .has_option = is_exact};
    case Quirk::h25_counts_idle_leaf_modules:
      return {.first_stage = 3,
              .option = "under policies that count hooks",
              .has_option = is_upstream_policy};
    case Quirk::h3_micro_step_counts_forwards:
    case Quirk::h11_module_stack_leaks:
    case Quirk::h16_partition_never_cleared:
    case Quirk::h17_release_memo_forever:
    case Quirk::h24_leaf_bucketed_per_backward:
      return {.first_stage = 3};
    case Quirk::h13_param_once_per_backward:
      return {.first_stage = 1};
    case Quirk::h18_no_sequence_correction:
      return {.first_stage = 3,
              .option = "with sequence-parallel ranks and reduce_scatter",
              .has_option = is_sequence_parallel};
    default:
      return needs_of_stages_1_and_2(quirk);
  }
}

std::string stages_text(const Needs& needs) {
  if (needs.first_stage == needs.last_stage) return fmt::format("stage {}", needs.first_stage);
  return fmt::format("stages {} to {}", needs.first_stage, needs.last_stage);
}

}  // namespace

std::string why_without_effect(Quirk quirk, const QuirkSetting& setting) {
  const Needs needs = needs_of(quirk);
  const int stage = setting.config.stage;
  if (stage < needs.first_stage || stage > needs.last_stage)
    return fmt::format("has no effect in stage {}: it is of {}", stage, stages_text(needs));
  if (needs.has_option == nullptr || needs.has_option(setting)) return {};
  return fmt::format("has no effect here: it shows {}", needs.option);
}

std::vector<std::string> notes_on(const Quirks& quirks, const QuirkSetting& setting) {
  std::vector<std::string> notes;
  for (const QuirkInfo& info : quirk_catalogue()) {
    if (!quirks.has(info.quirk)) continue;
    const std::string why = why_without_effect(info.quirk, setting);
    if (!why.empty()) notes.push_back(fmt::format("quirk {} ({}) {}", info.id, info.name, why));
  }
  return notes;
}

Result<void> check_quirks(const Quirks& quirks, std::string_view policy) {
  if (!quirks.has(Quirk::h23_stale_callback_flag_retained)) return {};
  if (policy == "exact" || policy == "x2") return {};
  return fail(ErrorCode::usage,
              fmt::format("quirk h23 (stale_callback_flag_retained) under policy {}: it is of "
                          "proposal X2; use policy x2, or exact to see it alone",
                          policy));
}

}  // namespace zeroproof

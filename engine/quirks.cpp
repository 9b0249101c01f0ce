#include "engine/quirks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "model/nearest_name.h"

namespace zeroproof {
namespace {

// zero_semantics 9, what upstream does; a reader compares `effect` with the reference there.
constexpr std::array<QuirkInfo, kQuirks> kCatalogue = {{
    {Quirk::h1_abort_leaks_state, "h1", "abort_leaks_state",
     "An exception inside engine.backward leaves its flag, the depth and a partly filled bucket."},
    {Quirk::h2_callback_once_per_forward, "h2", "callback_once_per_forward",
     "Only the first manual backward after a forward gets an automatic epilogue."},
    {Quirk::h3_micro_step_counts_forwards, "h3", "micro_step_counts_forwards",
     "Stage 3 counts micro-steps by forwards, so a second backward overwrites the first."},
    {Quirk::h4_boundary_overwrites_average, "h4", "boundary_overwrites_average",
     "Stages 1 and 2 keep only the last of several boundary backwards before one step."},
    {Quirk::h5_stage0_fp16_loss_unscaled, "h5", "stage0_fp16_loss_unscaled",
     "Stage 0 in fp16 divides gradients by a loss scale that never multiplied the loss."},
    {Quirk::h6_unscale_with_updated_scale, "h6", "unscale_with_updated_scale",
     "A step on which the dynamic scale moves unscales and clips with the new scale."},
    {Quirk::h7_autocast_clips_scaled, "h7", "autocast_clips_scaled",
     "fp16 autocast clips scaled gradients, and updates its scaler per group from local overflow."},
    {Quirk::h8_divides_at_outputs, "h8", "divides_at_outputs",
     "Accumulation divides at each output of the engine instead of once at the loss."},
    {Quirk::h9_static_scale_needs_no_scaler, "h9", "static_scale_needs_no_scaler",
     "A manual backward without scale() is accepted under a static fp16 loss scale."},
    {Quirk::h10_stale_boundary_before_prologue, "h10", "stale_boundary_before_prologue",
     "A backward inside forward uses the boundary flag of the micro-batch before it."},
    {Quirk::h11_module_stack_leaks, "h11", "module_stack_leaks",
     "An exception or early stop inside a module's forward leaves it on the module stack."},
    {Quirk::h12_ignores_container_outputs, "h12", "ignores_container_outputs",
     "Outputs inside a dataclass or custom container get no prologue and no division."},
    {Quirk::h13_param_once_per_backward, "h13", "param_once_per_backward",
     "A parameter whose gradient comes twice in one backward is refused or overwritten."},
    {Quirk::h14_overlap_boundary_hooks_only, "h14", "overlap_boundary_hooks_only",
     "Stage 1 with overlap reduces only parameters that fire in the boundary micro-batch."},
    {Quirk::h15_offload_never_cleared, "h15", "offload_never_cleared",
     "CPU-offloaded accumulators and gradient slices of stages 1 and 2 outlive their window."},
    {Quirk::h16_partition_never_cleared, "h16", "partition_never_cleared",
     "Stage 3 keeps an unused parameter's gradient partition and applies it again."},
    {Quirk::h17_release_memo_forever, "h17", "release_memo_forever",
     "What stage 3 releases after a module is remembered for ever, also past a new trace."},
    {Quirk::h18_no_sequence_correction, "h18", "no_sequence_correction",
     "Stage 3's reduce-scatter divides by the world, ignoring the sequence-parallel degree."},
    {Quirk::h19_reuse_waits_current_stream, "h19", "reuse_waits_current_stream",
     "Only the current stream, not every producer, waits before a bucket's buffer is reused."},
    {Quirk::h20_any_forward_resets_step, "h20", "any_forward_resets_step",
     "Any forward resets the state of a backward that is still to come."},
    {Quirk::h21_offload_copies_boundary_only, "h21", "offload_copies_boundary_only",
     "Managed offload loses the gradient of a parameter unused in the boundary micro-batch."},
    {Quirk::h22_explicit_epilogue_without_prologue, "h22", "explicit_epilogue_without_prologue",
     "engine.backward on a loss beside the engine's outputs runs an epilogue but no prologue."},
    {Quirk::h23_stale_callback_flag_retained, "h23", "stale_callback_flag_retained",
     "A second backward over one forward gets its prologue, as in X2, but queues no callback."},
    {Quirk::h24_leaf_bucketed_per_backward, "h24", "leaf_bucketed_per_backward",
     "A leaf module enters the bucket once a backward, so the same ids meet in one flush."},
    {Quirk::h25_counts_idle_leaf_modules, "h25", "counts_idle_leaf_modules",
     "Counting expects a hook of leaf modules that do not run, so the epilogue never comes."},
    {Quirk::h26_hooks_before_prologue_recounted, "h26", "hooks_before_prologue_recounted",
     "A parameter hook that fires before its prologue is forgotten and counted again."},
}};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

const QuirkInfo* find_quirk(std::string_view word) {
  const auto* const found =
      std::find_if(kCatalogue.begin(), kCatalogue.end(),
                   [&](const QuirkInfo& info) { return info.id == word || info.name == word; });
  return found == kCatalogue.end() ? nullptr : found;
}

std::string unknown_quirk(std::string_view word) {
  if (word.empty()) return "an empty quirk; write ids as h6,h16, or upstream, or none";
  std::vector<std::string_view> known = {"none", "upstream"};
  for (const QuirkInfo& info : kCatalogue) known.push_back(info.id);
  for (const QuirkInfo& info : kCatalogue) known.push_back(info.name);
  return fmt::format("unknown quirk '{}': {}", word, did_you_mean(word, known));
}

}  // namespace

std::span<const QuirkInfo> quirk_catalogue() {
  return kCatalogue;
}

Quirks Quirks::upstream() {
  Quirks quirks;
  quirks.bits_ = ((1U << kQuirks) - 1U) & ~kOfProposals;
  return quirks;
}

Result<Quirks> Quirks::parse(std::string_view text) {
  Quirks quirks;
  if (trimmed(text) == "none") return quirks;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    if (word == "none") {
      return fail(ErrorCode::usage, "quirk 'none' stands alone, not in a list");
    }
    if (word == "upstream") {
      quirks.bits_ |= upstream().bits_;
      continue;
    }
    const QuirkInfo* const info = find_quirk(word);
    if (info == nullptr) return fail(ErrorCode::usage, unknown_quirk(word));
    quirks.add(info->quirk);
  }
  return quirks;
}

std::string Quirks::text() const {
  std::string text;
  for (const QuirkInfo& info : kCatalogue) {
    if (!has(info.quirk)) continue;
    if (!text.empty()) text += ',';
    text += info.id;
  }
  return text.empty() ? "none" : text;
}

}  // namespace zeroproof

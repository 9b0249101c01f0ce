#include "zeroproof/engine/quirks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "model/nearest_name.h"

namespace zeroproof {
namespace {

constexpr std::string_view kReleasePrefix = "deepspeed-";

constexpr ReleaseRange kUntil0195 = {kStudiedReleases.first, {0, 19, 5}};
constexpr ReleaseRange kSince0195 = {{0, 19, 5}, kStudiedReleases.last};
constexpr ReleaseRange kSince0196 = {{0, 19, 6}, kStudiedReleases.last};
constexpr ReleaseRange kOnly0198 = {{0, 19, 8}, {0, 19, 8}};

// What upstream does (docs/reference/hazards.md); a reader compares `effect` with the reference
// there. H8 in 0.19.6 and later is H8 with N6: engine.backward divides its loss, and hooks divide
// elsewhere. H7 in 0.19.8 is H7 with N4: an overflow does not reach the scaler.
constexpr std::array<QuirkInfo, kQuirks> kQuirkCatalogue = {{
    {Quirk::h1_abort_leaks_state, "h1", "abort_leaks_state",
     "An exception inside engine.backward leaves its flag, the depth and a partly filled bucket.",
     kStudiedReleases},
    {Quirk::h2_callback_once_per_forward, "h2", "callback_once_per_forward",
     "Only the first manual backward after a forward gets an automatic epilogue.",
     kStudiedReleases},
    {Quirk::h3_micro_step_counts_forwards, "h3", "micro_step_counts_forwards",
     "Stage 3 counts micro-steps by forwards, so a second backward overwrites the first.",
     kStudiedReleases},
    {Quirk::h4_boundary_overwrites_average, "h4", "boundary_overwrites_average",
     "Stages 1 and 2 keep only the last of several boundary backwards before one step.",
     kStudiedReleases},
    {Quirk::h5_stage0_fp16_loss_unscaled, "h5", "stage0_fp16_loss_unscaled",
     "Stage 0 in fp16 divides gradients by a loss scale that never multiplied the loss.",
     kStudiedReleases},
    {Quirk::h6_unscale_with_updated_scale, "h6", "unscale_with_updated_scale",
     "A step on which the dynamic scale moves unscales and clips with the new scale.",
     kStudiedReleases},
    {Quirk::h7_autocast_clips_scaled, "h7", "autocast_clips_scaled",
     "fp16 autocast clips scaled gradients, and updates its scaler per group from local overflow.",
     kStudiedReleases},
    {Quirk::h8_divides_at_outputs, "h8", "divides_at_outputs",
     "Accumulation divides at each output of the engine instead of once at the loss.",
     kStudiedReleases},
    {Quirk::h9_static_scale_needs_no_scaler, "h9", "static_scale_needs_no_scaler",
     "A manual backward without scale() is accepted under a static fp16 loss scale.",
     kStudiedReleases},
    {Quirk::h10_stale_boundary_before_prologue, "h10", "stale_boundary_before_prologue",
     "A backward inside forward uses the boundary flag of the micro-batch before it.",
     kStudiedReleases},
    {Quirk::h11_module_stack_leaks, "h11", "module_stack_leaks",
     "An exception or early stop inside a module's forward leaves it on the module stack.",
     kStudiedReleases},
    {Quirk::h12_ignores_container_outputs, "h12", "ignores_container_outputs",
     "Outputs inside a dataclass or custom container get no prologue and no division.",
     kStudiedReleases},
    {Quirk::h13_param_once_per_backward, "h13", "param_once_per_backward",
     "A parameter whose gradient comes twice in one backward is refused or overwritten.",
     kStudiedReleases},
    {Quirk::h14_overlap_boundary_hooks_only, "h14", "overlap_boundary_hooks_only",
     "Stage 1 with overlap reduces only parameters that fire in the boundary micro-batch.",
     kStudiedReleases},
    {Quirk::h15_offload_never_cleared, "h15", "offload_never_cleared",
     "CPU-offloaded accumulators and gradient slices of stages 1 and 2 outlive their window.",
     kStudiedReleases},
    {Quirk::h16_partition_never_cleared, "h16", "partition_never_cleared",
     "Stage 3 keeps an unused parameter's gradient partition and applies it again.",
     kStudiedReleases},
    {Quirk::h17_release_memo_forever, "h17", "release_memo_forever",
     "What stage 3 releases after a module is remembered forever, also past a new trace.",
     kStudiedReleases},
    {Quirk::h18_no_sequence_correction, "h18", "no_sequence_correction",
     "Stage 3's reduce-scatter divides by the world, ignoring the sequence-parallel degree.",
     kStudiedReleases},
    {Quirk::h19_reuse_waits_current_stream, "h19", "reuse_waits_current_stream",
     "Only the current stream, not every producer, waits before a bucket's buffer is reused.",
     kStudiedReleases},
    {Quirk::h20_any_forward_resets_step, "h20", "any_forward_resets_step",
     "Any forward resets the state of a backward that is still to come.", kStudiedReleases},
    {Quirk::h21_offload_copies_boundary_only, "h21", "offload_copies_boundary_only",
     "Managed offload loses the gradient of a parameter unused in the boundary micro-batch.",
     kStudiedReleases},
    {Quirk::h22_explicit_epilogue_without_prologue, "h22", "explicit_epilogue_without_prologue",
     "engine.backward on a loss beside the engine's outputs runs an epilogue but no prologue.",
     kUntil0195},
    {Quirk::h23_stale_callback_flag_retained, "h23", "stale_callback_flag_retained",
     "A second backward over one forward gets its prologue, as in X2, but queues no callback.",
     std::nullopt},
    {Quirk::h24_leaf_bucketed_per_backward, "h24", "leaf_bucketed_per_backward",
     "A leaf module enters the bucket once a backward, so the same ids meet in one flush.",
     kStudiedReleases},
    {Quirk::h25_counts_idle_leaf_modules, "h25", "counts_idle_leaf_modules",
     "Counting expects a hook of leaf modules that do not run, so the epilogue never comes.",
     kStudiedReleases},
    {Quirk::h26_hooks_before_prologue_recounted, "h26", "hooks_before_prologue_recounted",
     "A parameter hook that fires before its prologue is forgotten and counted again.",
     kStudiedReleases},
    {Quirk::n4_overflow_keeps_scale, "n4", "overflow_keeps_scale",
     "An overflow under fp16 autocast skips the step and never lowers the loss scale.", kOnly0198},
    {Quirk::n5_zero_grad_keeps_partition, "n5", "zero_grad_keeps_partition",
     "zero_grad leaves what stages 1 and 2 have reduced into a float32 partition.", kOnly0198},
    {Quirk::n6_divides_by_running_engine, "n6", "divides_by_running_engine",
     "A loss of several engines is divided by the accumulation steps of the one that runs it.",
     kSince0196},
    {Quirk::n8_unmanaged_offload_repeats, "n8", "unmanaged_offload_repeats",
     "Unmanaged accumulation with CPU offload applies the last gradient of an unused parameter "
     "again.",
     kSince0195},
}};

std::string_view trimmed_word(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

const QuirkInfo* find_quirk(std::string_view word) {
  const auto* const found =
      std::find_if(kQuirkCatalogue.begin(), kQuirkCatalogue.end(),
                   [&](const QuirkInfo& info) { return info.id == word || info.name == word; });
  return found == kQuirkCatalogue.end() ? nullptr : found;
}

std::string unknown_quirk(std::string_view word) {
  if (word.empty())
    return "an empty quirk; write ids as h6,h16, or deepspeed-0.19.8, or upstream, or none";
  std::vector<std::string_view> known = {"none", "upstream"};
  for (const QuirkInfo& info : kQuirkCatalogue) known.push_back(info.id);
  for (const QuirkInfo& info : kQuirkCatalogue) known.push_back(info.name);
  return fmt::format("unknown quirk '{}': {}", word, did_you_mean(word, known));
}

}  // namespace

std::span<const QuirkInfo> quirk_catalogue() {
  return kQuirkCatalogue;
}

Quirks Quirks::upstream() {
  Quirks quirks;
  quirks.bits_ = kHazards & ~quirk_bit(Quirk::h23_stale_callback_flag_retained);
  return quirks;
}

Result<Quirks> Quirks::of_release(Release release) {
  if (!kStudiedReleases.contains(release))
    return fail(
        ErrorCode::usage,
        fmt::format("the hazards of DeepSpeed {} are not known: give a release from {} to "
                    "{}",
                    release.text(), kStudiedReleases.first.text(), kStudiedReleases.last.text()));
  Quirks quirks;
  for (const QuirkInfo& info : kQuirkCatalogue)
    if (info.releases && info.releases->contains(release)) quirks.add(info.quirk);
  return quirks;
}

Result<void> Quirks::add_word(std::string_view word) {
  if (word == "none") return fail(ErrorCode::usage, "quirk 'none' stands alone, not in a list");
  if (word == "upstream") {
    bits_ |= upstream().bits_;
    return {};
  }
  if (word.starts_with(kReleasePrefix))
    return Release::parse(word).and_then(of_release).map([this](const Quirks& quirks) {
      bits_ |= quirks.bits_;
    });
  const QuirkInfo* const info = find_quirk(word);
  if (info == nullptr) return fail(ErrorCode::usage, unknown_quirk(word));
  add(info->quirk);
  return {};
}

Result<Quirks> Quirks::parse(std::string_view text) {
  Quirks quirks;
  if (trimmed_word(text) == "none") return quirks;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (const auto added = quirks.add_word(trimmed_word(text.substr(begin, end - begin))); !added)
      return tl::unexpected(added.error());
    begin = end + 1;
  }
  return quirks;
}

std::string Quirks::text() const {
  std::string text;
  for (const QuirkInfo& info : kQuirkCatalogue) {
    if (!has(info.quirk)) continue;
    if (!text.empty()) text += ',';
    text += info.id;
  }
  return text.empty() ? "none" : text;
}

}  // namespace zeroproof

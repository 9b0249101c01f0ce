#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "zeroproof/internal/engine/release.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// The upstream behaviours of hazards H1 to H26 and N4 to N8 (docs/reference/hazards.md), each
// to be switched on by itself. Without any, the engine does what is right. N1 to N3 are behaviour
// of the hook policies; N7 has no quirk (docs/reference/hazards.md says why).
enum class Quirk : std::uint8_t {
  h1_abort_leaks_state,
  h2_callback_once_per_forward,
  h3_micro_step_counts_forwards,
  h4_boundary_overwrites_average,
  h5_stage0_fp16_loss_unscaled,
  h6_unscale_with_updated_scale,
  h7_autocast_clips_scaled,
  h8_divides_at_outputs,
  h9_static_scale_needs_no_scaler,
  h10_stale_boundary_before_prologue,
  h11_module_stack_leaks,
  h12_ignores_container_outputs,
  h13_param_once_per_backward,
  h14_overlap_boundary_hooks_only,
  h15_offload_never_cleared,
  h16_partition_never_cleared,
  h17_release_memo_forever,
  h18_no_sequence_correction,
  h19_reuse_waits_current_stream,
  h20_any_forward_resets_step,
  h21_offload_copies_boundary_only,
  h22_explicit_epilogue_without_prologue,
  h23_stale_callback_flag_retained,
  h24_leaf_bucketed_per_backward,
  h25_counts_idle_leaf_modules,
  h26_hooks_before_prologue_recounted,
  n4_overflow_keeps_scale,
  n5_zero_grad_keeps_partition,
  n6_divides_by_running_engine,
  n8_unmanaged_offload_repeats,
};
inline constexpr int kQuirks = 30;

struct QuirkInfo {
  Quirk quirk;
  std::string_view id;                   // "h1"
  std::string_view name;                 // "abort_leaks_state"
  std::string_view effect;               // one sentence: what is done wrong
  std::optional<ReleaseRange> releases;  // that have it; empty: a proposal, in no release
};

// The releases whose sources were read for all hazards.
inline constexpr ReleaseRange kStudiedReleases = {{0, 18, 9}, {0, 19, 8}};

// In order of their numbers. Static.
std::span<const QuirkInfo> quirk_catalogue();

constexpr std::uint32_t quirk_bit(Quirk quirk) {
  return 1U << static_cast<int>(quirk);
}

// A set of quirks; plain data.
class Quirks {
 public:
  bool has(Quirk quirk) const { return (bits_ & quirk_bit(quirk)) != 0; }
  void add(Quirk quirk) { bits_ |= quirk_bit(quirk); }
  bool is_empty() const { return bits_ == 0; }
  // All that each studied release has: then also what upstream does otherwise without being a
  // hazard.
  bool is_upstream() const { return (bits_ & kOfEveryRelease) == kOfEveryRelease; }

  // What edaa7221 has, the revision between 0.19.5 and 0.19.6 that docs/spec/zero.md describes: H1
  // to H26 without H23, which is of a proposal.
  static Quirks upstream();
  // What a release has; an error outside kStudiedReleases.
  static Result<Quirks> of_release(Release release);
  // Comma-separated ids, names, releases ("deepspeed-0.19.8") or "upstream", or "none" alone; an
  // error names the nearest.
  static Result<Quirks> parse(std::string_view text);
  std::string text() const;  // ids, comma-separated; "none"

 private:
  static constexpr std::uint32_t kHazards =  // H1 to H26
      quirk_bit(Quirk::n4_overflow_keeps_scale) - 1U;
  static constexpr std::uint32_t kOfEveryRelease =
      kHazards & ~quirk_bit(Quirk::h22_explicit_epilogue_without_prologue) &
      ~quirk_bit(Quirk::h23_stale_callback_flag_retained);

  Result<void> add_word(std::string_view word);

  std::uint32_t bits_ = 0;
};

}  // namespace zeroproof

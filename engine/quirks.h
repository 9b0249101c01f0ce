#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/result.h"

namespace zeroproof {

// The upstream behaviours behind hazards H1 to H26 (zero_semantics 9), each to be switched on by
// itself. Without any, the engine does what is right.
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
};
inline constexpr int kQuirks = 26;

struct QuirkInfo {
  Quirk quirk;
  std::string_view id;      // "h1"
  std::string_view name;    // "abort_leaks_state"
  std::string_view effect;  // one sentence: what is done wrong
};

// In order of their numbers. Static.
std::span<const QuirkInfo> quirk_catalogue();

// A set of quirks; plain data.
class Quirks {
 public:
  bool has(Quirk quirk) const { return (bits_ >> static_cast<int>(quirk) & 1U) != 0; }
  void add(Quirk quirk) { bits_ |= 1U << static_cast<int>(quirk); }
  bool is_empty() const { return bits_ == 0; }
  // All of upstream's: then also what upstream does otherwise without being a hazard.
  bool is_upstream() const { return (bits_ | kOfProposals) == (1U << kQuirks) - 1U; }

  // What the studied upstream revision has: all of them but those of proposals (H23).
  static Quirks upstream();
  // Comma-separated ids or names, or "upstream", or "none"; an error names the nearest.
  static Result<Quirks> parse(std::string_view text);
  std::string text() const;  // ids, comma-separated; "none"

 private:
  static constexpr std::uint32_t kOfProposals =
      1U << static_cast<int>(Quirk::h23_stale_callback_flag_retained);

  std::uint32_t bits_ = 0;
};

}  // namespace zeroproof

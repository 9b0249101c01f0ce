#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace zeroproof::reference {

// What the walker checks. The table in rule.cpp has one row for each, in this order.
enum class Rule : std::uint8_t {
  gradient_due,
  gradient_reduced,
  gradient_once,
  gradient_dtype,
  bucket_contents,
  bucket_room,
  bucket_boundary,
  reduce_operation,
  reduce_bytes,
  reduce_pieces,
  reduce_once,
  step_agreement,
  step_gathers,
  forward_silent,
  collective_empty,
  gather_once,
  gather_needed,
  gather_ahead,
  gather_bytes,
  gather_finished,
  order_begun,
  order_left,
  order_kept,
  order_compared,
  module_fetched,
  kept_reused,
  whole_unasked,
  prefetch_bound,
  free_after_module,
  free_after_operation,
  free_after_abort,
  free_after_backward,
  kept_bound,
  needed_soon,
  persistent_kept,
  persistent_back,
  claim_kept,
  claim_freed,
  rest_bytes,
  count_once,
  window_count,
  step_count,
  loss_scale,
  step_outcome,
  call_contents,
  bracket_end,
};

struct RuleInfo {
  Rule rule;
  std::string_view id;  // "bucket.room"
  std::string_view
      property;  // the number that today's tables have for it (docs/reference/trace_properties.md)
  std::string_view section;  // where docs/spec/zero states it
  std::string_view sentence;
};

std::span<const RuleInfo> rules();
const RuleInfo& info(Rule rule);
constexpr std::size_t kRules = static_cast<std::size_t>(Rule::bracket_end) + 1;

// Why an event or a stretch of a run is left to the engine's choice.
enum class Freedom : std::uint8_t {
  retained_graph,   // events do not say whether a backward keeps its graph
  user_context,     // events do not say what a gather context holds
  external_use,     // nor which module reads another's parameter
  repeated_module,  // nor which call of a module a backward belongs to
  transform,        // inside a function transform
  failed_call,      // after an exception, until the next pass
  lost_order,       // the recorded order could not be followed
  no_hooks,         // gradients come without events where no hook is registered (2.2)
  no_sync,          // events do not say whether a backward is inside no_sync
  other_dialect,    // DeepSpeed, where its rule is not written down here
  unknown_group,    // a collective of a group that the world does not describe
};

std::string_view freedom_name(Freedom freedom);
constexpr std::size_t kFreedoms = static_cast<std::size_t>(Freedom::unknown_group) + 1;

}  // namespace zeroproof::reference

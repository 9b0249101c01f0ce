#include "props/reference/rule.h"

#include <array>

namespace zeroproof::reference {
namespace {

constexpr std::array<RuleInfo, kRules> kTable = {{
    {Rule::gradient_due, "gradient.due", "R10", "2.16",
     "a bucket gets gradients that a backward has accumulated, and no others"},
    {Rule::gradient_reduced, "gradient.reduced", "R10", "2.16, 2.18",
     "a reduction leaves no due gradient out"},
    {Rule::gradient_once, "gradient.once", "R10", "2.16",
     "a gradient enters a bucket once; a later contribution joins it there"},
    {Rule::gradient_dtype, "gradient.dtype", "R10", "6.1",
     "a gradient travels in its communication dtype, with all its elements"},
    {Rule::bucket_contents, "bucket.contents", "R10", "2.16",
     "a reduction takes what its bucket holds"},
    {Rule::bucket_room, "bucket.room", "R10", "2.16",
     "a bucket is reduced early only where the next gradient has no room in it"},
    {Rule::bucket_boundary, "bucket.boundary", "R10", "2.7, 2.11, 2.14",
     "stages 0 and 1 reduce at a boundary, or in the step where the caller owns the window"},
    {Rule::reduce_operation, "reduce.operation", "R10", "2.17, 2.18",
     "the configuration decides which collective reduces a bucket"},
    {Rule::reduce_bytes, "reduce.bytes", "R10", "2.17, 2.18",
     "a reduction sends each element once, in the communication dtype"},
    {Rule::reduce_pieces, "reduce.pieces", "R10", "2.17, 2.18",
     "a bucket is reduced in as few pieces as its form allows"},
    {Rule::reduce_once, "reduce.once", "R10", "2.6", "a backward has one epilogue for each task"},
    {Rule::step_agreement, "step.agreement", "R10", "2.19",
     "a step asks the other ranks about overflow and norm, once each"},
    {Rule::step_gathers, "step.gathers", "R10", "2.19",
     "a step gathers its updated values in as few pieces as the configuration allows"},
    {Rule::forward_silent, "forward.silent", "R10", "2.3",
     "below stage 3 a forward has no communication"},
    {Rule::collective_empty, "collective.empty", "R10", "2.17",
     "no collective is without bytes, but for a broadcast of an empty order"},
    {Rule::gather_once, "gather.once", "R10", "3.1", "a whole parameter is not gathered again"},
    {Rule::gather_needed, "gather.needed", "R10", "3.3",
     "a fetch gathers the free parameters of its module, first and at once"},
    {Rule::gather_ahead, "gather.ahead", "R10", "3.3",
     "a fetch gathers ahead what the recorded order has next"},
    {Rule::gather_bytes, "gather.bytes", "R10", "3.1, 6.1",
     "a gather is one collective for each dtype, of all slices"},
    {Rule::gather_finished, "gather.finished", "R10", "3.4",
     "no gather is under way after the epilogue of a backward"},
    {Rule::order_begun, "order.begun", "R10", "3.2, 3.5",
     "each forward of the root begins the order once"},
    {Rule::order_left, "order.left", "R10", "3.5",
     "an order that the program leaves is given up, with what was gathered ahead by it"},
    {Rule::order_kept, "order.kept", "R10", "3.5",
     "an order that the program follows is not given up"},
    {Rule::order_compared, "order.compared", "R10", "3.5",
     "ranks compare an order while it is new, and never again"},
    {Rule::module_fetched, "module.fetched", "R10", "3.2, 3.7",
     "each module fetches for itself, or the leaf module above it does"},
    {Rule::kept_reused, "kept.reused", "R10", "3.11",
     "what a retained graph keeps is not gathered again for it"},
    {Rule::whole_unasked, "whole.unasked", "R12", "3.1", "no parameter is whole without a gather"},
    {Rule::prefetch_bound, "prefetch.bound", "P69", "3.3",
     "a fetch gathers ahead within the bucket and the room for live parameters"},
    {Rule::free_after_module, "free.after_module", "R12", "3.4, 3.12",
     "the end of a module frees what no later use needs"},
    {Rule::free_after_operation, "free.after_operation", "R12", "3.10",
     "an operation that gathers its weight in a backward frees it again"},
    {Rule::free_after_abort, "free.after_abort", "R12", "3.2, 3.13",
     "an exception frees what the interrupted modules used"},
    {Rule::free_after_backward, "free.after_backward", "P63", "3.4, 3.12",
     "the epilogue of a backward frees every parameter that may be freed"},
    {Rule::kept_bound, "kept.bound", "R12", "3.11",
     "retained graphs keep at most stage3_max_live_parameters elements"},
    {Rule::needed_soon, "needed.soon", "P64", "3.4",
     "what is used again within the reuse distance stays whole"},
    {Rule::persistent_kept, "persistent.kept", "P64", "3.6",
     "a module's end, and a backward's, leave persistent parameters whole"},
    {Rule::persistent_back, "persistent.back", "P64", "3.6",
     "a step, and a load, end with all persistent parameters whole"},
    {Rule::claim_kept, "claim.kept", "P81", "5",
     "what a graph of skipped frames claims stays whole until its backward is over"},
    {Rule::claim_freed, "claim.freed", "P84", "5",
     "what no graph claims is freed where a forward begins and where a backward ends"},
    {Rule::rest_bytes, "rest.bytes", "R12", "2.15, 2.16, 3.1",
     "between windows an engine holds its weights, states and buckets"},
    {Rule::count_once, "count.once", "R11", "1.3", "expected hooks are counted once a phase"},
    {Rule::window_count, "window.count", "R13", "2.18",
     "a window counts the backwards that are in it"},
    {Rule::step_count, "step.count", "R13", "2.11", "each step counts one micro-batch"},
    {Rule::loss_scale, "loss.scale", "R13", "2.19", "the loss scale moves by its rule"},
    {Rule::step_outcome, "step.outcome", "R21", "2.11, 2.19",
     "each model step is applied or skipped, and says which"},
    {Rule::call_contents, "call.contents", "R21", "2.3, 2.5",
     "a forward begins a step of the manager, and a backward has a prologue"},
    {Rule::bracket_end, "bracket.end", "R21", "hooktrace 5", "what begins has an end"},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kRules; ++i)
    if (static_cast<std::size_t>(kTable[i].rule) != i) return false;
  return true;
}
static_assert(is_in_order());

constexpr std::array<std::string_view, kFreedoms> kFreedomNames = {"retained graph",
                                                                   "user's gather context",
                                                                   "use by another module",
                                                                   "repeated module",
                                                                   "transform",
                                                                   "after a failed call",
                                                                   "order lost",
                                                                   "no gradient hooks",
                                                                   "no_sync",
                                                                   "DeepSpeed's own rule",
                                                                   "unknown group"};

}  // namespace

std::span<const RuleInfo> rules() {
  return kTable;
}

const RuleInfo& info(Rule rule) {
  return kTable.at(static_cast<std::size_t>(rule));
}

std::string_view freedom_name(Freedom freedom) {
  return kFreedomNames.at(static_cast<std::size_t>(freedom));
}

}  // namespace zeroproof::reference

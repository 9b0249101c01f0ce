#include <array>

#include "props/monitors.h"
#include "props/registry.h"

namespace zeroproof {
namespace {

constexpr Scopes kBoth = Scope::trace | Scope::explore;
constexpr Scopes kTrace = only(Scope::trace);
constexpr Scopes kExplore = only(Scope::explore);

constexpr std::array kCatalogue = {
    Property{"epilogue.exactly_once", "P1", "I1",
             "every user backward that completes gets exactly one epilogue", "#7780",
             Expectation::eventually, kBoth},
    Property{"epilogue.once_after_last_hook", "P2", "I1",
             "the epilogue runs after the last gradient hook of its backward", "#7665, #7780",
             Expectation::always, kBoth},
    Property{"hooks.inert_outside_user_backward", "P3", "I9",
             "no epilogue runs inside engine.forward", "#7780", Expectation::always, kBoth},
    Property{"state.depth_zero_at_quiet", "P4", "I10",
             "no backward is counted as active when none runs", "#8245", Expectation::always,
             kBoth},
    Property{"state.fresh_at_first_prologue", "P5", "I10",
             "the counters are zero right after the first prologue of a step", "#7886",
             Expectation::always, kExplore},
    Property{"cost.count_once_per_phase", "P6", "I12",
             "the expected count is asked for at most once a phase", "#7886", Expectation::always,
             kExplore},
    Property{"grads.no_lost_work", "P7", "I2",
             "the work of every gradient hook is followed by an epilogue before the next step",
             "#7780, #8245", Expectation::eventually, kBoth},
    Property{"state.queued_flag_is_backed", "P8", "I10",
             "the queued flag is set only while a live graph task holds the callback", "H2",
             Expectation::always, kBoth},
    Property{"hooks.refresh_before_reenter", "P9", "I1",
             "a hook asks whether to refresh the count before it reenters", "#7886",
             Expectation::always, kExplore},
    Property{"epilogue.explicit_once", "P10", "I1",
             "engine.backward runs one explicit epilogue and no automatic one", "#7665",
             Expectation::eventually, kBoth},
    Property{"state.clean_after_abort", "P11", "I10",
             "the forward after an aborted backward finds the manager as new, or raises", "#8245",
             Expectation::always, kBoth},
    Property{"state.not_running_at_quiet", "P12", "I10",
             "engine.backward counts as running only while it runs", "#8245", Expectation::always,
             kExplore},
    Property{"hooks.expected_hooks_fire", "P13", "I1",
             "without a callback the expected count has only hooks that fire", "#7665, H25",
             Expectation::eventually, kExplore},
    Property{"identity.not_shared", "P14", "I13",
             "events of one engine never change the manager of another", "#7665",
             Expectation::always, kBoth},
    Property{"prologue.once_per_forward_and_task", "P15", "I9",
             "a graph task runs the prologue of each forward it reaches, once", "#8045, #8135",
             Expectation::eventually, kBoth},
    Property{"prologue.before_hooks", "P16", "I1",
             "the prologue runs before every gradient hook that only its outputs lead to", "#7665",
             Expectation::always, kExplore},
    Property{"epilogue.callback_in_prologue_task", "P17", "I1",
             "the callback is queued on the graph task in which the prologue ran", "#7780",
             Expectation::always, kBoth},
    Property{"state.depth_bounds", "P18", "I10",
             "an automatic epilogue needs an active backward, and the depth is never negative",
             "#7665", Expectation::always, kExplore},
    Property{"grads.equal_unsharded", "P26", "I2",
             "the gradient equals that of stage 0 on the same data", "#7665, #8232",
             Expectation::always, kTrace},
    Property{"accumulate.window_sums", "P27", "I14",
             "the gradient of an accumulation window is the sum over its micro-batches",
             "#7780, #7981", Expectation::always, kTrace},
    Property{"accumulate.retained_graph_sums", "P28", "I14",
             "several backwards over one retained forward add up", "#8135, H3, H4",
             Expectation::always, kTrace},
    Property{"accumulate.outstanding_forwards_sum", "P29", "I14",
             "backwards over several outstanding forwards add up in any order", "H3, H4",
             Expectation::always, kTrace},
    Property{"accumulate.backwards_before_step_sum", "P30", "I14",
             "several forward-backward pairs before one step add up", "#7992, H4",
             Expectation::always, kTrace},
    Property{"bucket.one_flush_per_backward", "P42", "I7",
             "each parameter is in at most one flush of a completed backward", "#7780, H13",
             Expectation::always, kTrace},
    Property{"collective.same_on_all_ranks", "P45", "I4",
             "all ranks issue the same collectives in the same order", "H25", Expectation::always,
             kTrace},
    Property{"params.released_at_end", "P63", "I6",
             "after the epilogue no parameter is gathered or in use", "#8148", Expectation::always,
             kTrace},
    Property{"params.gather_order_same_on_all_ranks", "P67", "I4",
             "all ranks gather parameters in the same order", "3.5", Expectation::always, kTrace},
    Property{"module.stack_balanced", "P74", "I10",
             "the forward module stack is as deep after a forward or backward as before", "H11",
             Expectation::always, kTrace},
    Property{"transform.inert", "P79", "I9",
             "under a functorch transform the engine behaves as the bare module", "#8026",
             Expectation::always, kTrace},
};

struct Entry {
  std::string_view number;
  MonitorFactory factory;
};

constexpr std::array kFactories = {
    Entry{"P1", make_epilogue_exactly_once},
    Entry{"P2", make_epilogue_after_last_hook},
    Entry{"P3", make_epilogue_outside_forward},
    Entry{"P4", make_depth_zero_at_quiet},
    Entry{"P5", make_fresh_at_first_prologue},
    Entry{"P6", make_count_once_per_phase},
    Entry{"P7", make_no_lost_work},
    Entry{"P8", make_queued_flag_backed},
    Entry{"P9", make_refresh_before_reenter},
    Entry{"P10", make_epilogue_explicit_once},
    Entry{"P11", make_clean_after_abort},
    Entry{"P12", make_not_running_at_quiet},
    Entry{"P13", make_expected_hooks_fire},
    Entry{"P14", make_engines_kept_apart},
    Entry{"P15", make_prologue_once},
    Entry{"P16", make_prologue_before_hooks},
    Entry{"P17", make_epilogue_in_prologue_task},
    Entry{"P18", make_epilogue_needs_depth},
    Entry{"P28", make_retained_backwards_sum},
    Entry{"P29", make_outstanding_forwards_sum},
    Entry{"P30", make_backwards_before_step_sum},
    Entry{"P42", make_one_flush_per_backward},
    Entry{"P63", make_released_at_end},
    Entry{"P74", make_module_stack_balanced},
    Entry{"P79", make_transform_inert},
};

}  // namespace

std::span<const Property> all_properties() {
  return kCatalogue;
}

std::unique_ptr<Monitor> make_monitor(const Monitor::Context& context) {
  for (const Entry& entry : kFactories)
    if (entry.number == context.property->number) return entry.factory(context);
  return nullptr;
}

}  // namespace zeroproof

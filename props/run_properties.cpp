#include "props/run_properties.h"

#include <algorithm>
#include <array>

#include "props/registry.h"
#include "props/relations/relation_properties.h"

namespace zeroproof {
namespace {

constexpr Scopes kTrainOnly = only(Scope::train);

constexpr std::array kRunProperties = {
    Property{"run.no_error", "R1", "I10",
             "no rank ends with an error that is not documented for its program", "bug catalogue",
             Expectation::always, kTrainOnly},
    Property{"run.no_deadlock", "R2", "I4", "every rank comes to the end of its program",
             "bug catalogue E", Expectation::eventually, kTrainOnly},
    Property{"collective.congruent", "R3", "I4",
             "ranks that meet in a collective call the same one, of the same size and contents",
             "bug catalogue E", Expectation::always, kTrainOnly},
    Property{"memory.no_use_after_free", "R4", "I8",
             "work on a stream finds its memory as it was when it was queued", "bug catalogue G",
             Expectation::always, kTrainOnly},
    Property{"run.makes_progress", "R5", "I10", "a run ends within its budget of steps",
             "bug catalogue", Expectation::eventually, kTrainOnly},
    Property{"loss.equal_unsharded", "R6", "I5",
             "every loss is the baseline's: forwards compute with whole, current parameters",
             "bug catalogue F", Expectation::always, kTrainOnly},
    Property{"update.equal_unsharded", "R7", "I3",
             "masters, weights and optimizer state after a step are the baseline's",
             "bug catalogue C", Expectation::always, kTrainOnly},
    Property{"decision.equal_unsharded", "R8", "I11",
             "a step is applied, or skipped for an overflow, where the baseline does so",
             "bug catalogue D", Expectation::always, kTrainOnly},
    Property{"norm.equal_unsharded", "R9", "I11", "the reported gradient norm is the baseline's",
             "bug catalogue C", Expectation::always, kTrainOnly},
    Property{"cost.collectives_bounded", "R10", "I12",
             "a rank issues no more collectives than its buckets, parameters and steps need",
             "bug catalogue H", Expectation::always, kTrainOnly},
    Property{"cost.counts_bounded", "R11", "I12",
             "the expected hooks are counted at most once a phase", "#7886", Expectation::always,
             kTrainOnly},
    Property{
        "memory.bounded", "R12", "I6",
        "live bytes do not grow from window to window, and no parameter stays whole longer than "
        "it is needed",
        "bug catalogue H", Expectation::always, kTrainOnly},
    Property{"counters.equal_unsharded", "R13", "I11",
             "an engine's counted steps and samples and its loss scale are the baseline's, after a "
             "load too",
             "bug catalogue D", Expectation::always, kTrainOnly},
    Property{"misuse.refused", "R14", "I10",
             "what is documented as refused is refused, and the program goes on after it; ranks "
             "that run modules in another order come to an end",
             "docs/spec/zero.md 2.20, 3.14", Expectation::always, kTrainOnly},
    Property{
        "cost.overlap_kept", "R20", "I12",
        "the computation waits for a reduction only where it needs what that made, and the host "
        "for none that it has only just queued",
        "bug catalogue G03", Expectation::always, kTrainOnly},
    Property{"record.whole", "R21", "I10",
             "events report the outcome of each step, what an engine does around each forward and "
             "backward, and the end of what begins",
             "hooktrace 3", Expectation::always, kTrainOnly},
};

}  // namespace

std::span<const Property> run_properties() {
  return kRunProperties;
}

const Property* find_any_property(std::string_view id_or_number) {
  const auto is_it = [&](const Property& it) {
    return it.id == id_or_number || it.number == id_or_number;
  };
  for (const std::span<const Property> list : {run_properties(), relation_properties()})
    if (const auto at = std::ranges::find_if(list, is_it); at != list.end()) return &*at;
  return find_property(id_or_number);
}

}  // namespace zeroproof

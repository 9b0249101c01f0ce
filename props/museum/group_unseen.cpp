// Further faults, twenty at a time and of no catalogue: written into the engine by somebody who had
// not seen the generator and the judges, and hunted as they are (docs/FURTHER_FAULTS.md). Nothing
// may be tuned to them.
#include <array>
#include <string>
#include <vector>

#include "props/museum/entry.h"
#include "props/registry.h"
#include "props/run_properties.h"

namespace zeroproof::museum {
namespace {

struct Fault {
  std::string_view id;  // of the departure, too
  std::string_view text;
};

constexpr std::array kFaults = {
    Fault{"U01", "stage 0 leaves the place of a parameter without a gradient as is"},
    Fault{"U02", "without pre-division nothing divides the all-reduced bucket of stages 1 and 2"},
    Fault{"U03", "the epilogue stops at the first bucket that is empty"},
    Fault{"U04", "the norm is that of the first parameter group alone"},
    Fault{"U05", "a load refreshes the master weights and not those to compute with"},
    Fault{"U06", "a load of stage 3 reads a short last shard from rank times its own length"},
    Fault{"U07",
          "all-reduced gradients of stage 3 are cut into slices without the padding between"},
    Fault{"U08", "the epilogue waits for reductions before it starts the last ones"},
    Fault{"U09", "the computation waits for a gather, and not for its unpacking"},
    Fault{"U10", "a forward's end releases what was gathered for its backward"},
    Fault{"U11", "gathering ahead goes on when its room is exactly full"},
    Fault{"U12", "a failed backward of stages 1 and 2 keeps what it has reduced"},
    Fault{"U13", "a forward that throws leaves its modules' uses of parameters"},
    Fault{"U14", "a step that overflows returns before the loss scale is lowered"},
    Fault{"U15", "a gradient that is clipped is not unscaled"},
    Fault{"U16", "stage 3 offloads the last window's gradient of a parameter that had none"},
    Fault{"U17", "stage 1 adds a local sum at the boundary that hooks added already"},
    Fault{"U18", "a no_sync block that throws stays open"},
    Fault{"U19", "a checkpoint in a backward inside forward counts as the user's backward"},
    Fault{"U20", "every owner of a part of a parameter is sent the parameter's first elements"},
    Fault{"V01",
          "abandoning a failed backward drops the local sums of earlier micro-batches, too, "
          "and not its own .grad alone"},
    Fault{"V02",
          "the whole gradient is cut into floor(n / ranks) pieces, so the norm leaves out the "
          "tail"},
    Fault{"V03",
          "abandon_gradients does not reset what is known of each parameter's progress in the "
          "failed backward (is_sum_taken stays)"},
    Fault{"V04",
          "reduce_to_owners sends a parameter to its first and its last owner alone, none in "
          "between"},
    Fault{"V05",
          "the pending gradient is zeroed on the compute stream, where the reduction stream "
          "adds to it"},
    Fault{"V06",
          "a model step forgets the boundary that set_gradient_accumulation_boundary set (it "
          "stays until changed)"},
    Fault{"V07",
          "a synchronous gather does not wait for those of its parameters that are in flight "
          "already"},
    Fault{"V08",
          "the look-ahead for reuse (stage3_max_reuse_distance) knows the own parameters of "
          "the coming modules, not their external ones"},
    Fault{"V09",
          "reset_step compares the order of modules over the ranks also when the trace is "
          "complete"},
    Fault{"V10",
          "inside coalesce_grad_reduction a leaf module gives no zeros for what this rank did "
          "not use"},
    Fault{"V11", "a step (or load) does not give back what retained graphs keep"},
    Fault{"V12", "of the graphs that one backward reaches only the first counts as begun"},
    Fault{"V13",
          "the end of a function transform's graph task releases no leftovers any more (that "
          "of a failed one does)"},
    Fault{"V14",
          "the linear function asks whether its weight was partitioned behind the gather and "
          "not before it, so it never partitions it again"},
    Fault{"V15", "gradients are looked at for overflow only where the loss scale is dynamic"},
    Fault{"V16", "a coalesce block left by an exception reduces nothing"},
    Fault{"V17",
          "the final callback of a graph task without a prologue runs no epilogue even if "
          "hooks of it added work"},
    Fault{"V18",
          "engine.scale() counts as called up to the boundary's backward instead of for one "
          "backward"},
    Fault{"V19",
          "only parameters that are trained are broadcast from rank 0 when the engine is made"},
    Fault{"V20", "a load does not drop the unfinished window first"},
    Fault{"W01", "a local sum stays where it is after it was reduced"},
    Fault{"W02", "step() does not forget which parameters were used"},
    Fault{"W03", "dropping the window forgets the local sums of earlier micro-batches"},
    Fault{"W04", "loading sets the hysteresis to the configured one instead of the saved one"},
    Fault{"W05",
          "a backward in no_sync or coalesce_grad_reduction does not mark the window as having "
          "scaled gradients"},
    Fault{"W06",
          "the count of backwards since the last step is reset only where the step was applied"},
    Fault{"W07",
          "a released parameter's memory is given back without record_use on the compute stream"},
    Fault{"W08",
          "a failed outermost task abandons gradients only where a hook told of work, not "
          "where only a prologue ran"},
    Fault{"W09", "step() is refused only when no graph task is open"},
    Fault{"W10", "a forward that throws is not ended for the optimizer"},
    Fault{"W11", "the loss is scaled in half precision"},
    Fault{"W12", "registering gradient hooks anew leaves the old ones"},
    Fault{"W13", "loading restores the step count of the first parameter group alone"},
    Fault{"W14",
          "the end of engine.backward sets the count of managed backwards to 0 instead of one "
          "less"},
    Fault{"W15", "a rank that failed returns before the all-reduce that tells the others"},
    Fault{"W16", "a new external parameter does not invalidate the complete trace"},
    Fault{"W17",
          "a last backward that does not retain the graph does not end what was kept for it"},
    Fault{"W18",
          "a gathered_parameters context left by an exception keeps its mark on the parameters"},
    Fault{"W19", "a fetch does not install parameters without elements but gathers them"},
    Fault{"W20",
          "with torch_autocast all parameters communicate in its dtype, not those of safe "
          "modules alone"},
};

// Nobody has said beforehand what has to catch them.
std::string_view any_property() {
  static const std::string numbers = [] {
    std::string joined;
    for (const auto& properties : {std::span(all_properties()), run_properties()})
      for (const Property& property : properties) joined.append(property.number).append(" ");
    return joined;
  }();
  return numbers;
}

}  // namespace

std::span<const Entry> group_unseen() {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> entries;
    for (const Fault& fault : kFaults)
      entries.push_back({.id = fault.id,
                         .fault = fault.text,
                         .properties = any_property(),
                         .plant = planted(Departure::of(fault.id))});
    return entries;
  }();
  return all;
}

}  // namespace zeroproof::museum

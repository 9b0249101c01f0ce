// Further faults, twenty at a time and of no catalogue: written into the engine by somebody who had
// not seen the generator and the judges, and hunted as they are (docs/FURTHER_FAULTS.md). Nothing
// may be tuned to them.
#include <string>
#include <vector>

#include "props/museum/entry.h"
#include "props/registry.h"
#include "props/run_properties.h"

namespace zeroproof::museum {
namespace {

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

Entry further(std::string_view id, Departure departure, std::string_view fault) {
  return {.id = id, .fault = fault, .properties = any_property(), .plant = planted(departure)};
}

std::vector<Entry> first_twenty() {
  return {
      further("U01", "U01"_bug, "stage 0 leaves the place of a parameter without a gradient as is"),
      further("U02", "U02"_bug,
              "without pre-division nothing divides the all-reduced bucket of stages 1 and 2"),
      further("U03", "U03"_bug, "the epilogue stops at the first bucket that is empty"),
      further("U04", "U04"_bug, "the norm is that of the first parameter group alone"),
      further("U05", "U05"_bug,
              "a load refreshes the master weights and not those to compute with"),
      further("U06", "U06"_bug,
              "a load of stage 3 reads a short last shard from rank times its own length"),
      further("U07", "U07"_bug,
              "all-reduced gradients of stage 3 are cut into slices without the padding between"),
      further("U08", "U08"_bug, "the epilogue waits for reductions before it starts the last ones"),
      further("U09", "U09"_bug, "the computation waits for a gather, and not for its unpacking"),
      further("U10", "U10"_bug, "a forward's end releases what was gathered for its backward"),
      further("U11", "U11"_bug, "gathering ahead goes on when its room is exactly full"),
      further("U12", "U12"_bug, "a failed backward of stages 1 and 2 keeps what it has reduced"),
      further("U13", "U13"_bug, "a forward that throws leaves its modules' uses of parameters"),
      further("U14", "U14"_bug, "a step that overflows returns before the loss scale is lowered"),
      further("U15", "U15"_bug, "a gradient that is clipped is not unscaled"),
      further("U16", "U16"_bug,
              "stage 3 offloads the last window's gradient of a parameter that had none"),
      further("U17", "U17"_bug,
              "stage 1 adds a local sum at the boundary that hooks added already"),
      further("U18", "U18"_bug, "a no_sync block that throws stays open"),
      further("U19", "U19"_bug,
              "a checkpoint in a backward inside forward counts as the user's backward"),
      further("U20", "U20"_bug,
              "every owner of a part of a parameter is sent the parameter's first elements"),
  };
}

std::vector<Entry> second_twenty() {
  return {
      further("V01", "V01"_bug,
              "abandoning a failed backward drops the local sums of earlier micro-batches, too, "
              "and not its own .grad alone"),
      further("V02", "V02"_bug,
              "the whole gradient is cut into floor(n / ranks) pieces, so the norm leaves out the "
              "tail"),
      further("V03", "V03"_bug,
              "abandon_gradients does not reset what is known of each parameter's progress in the "
              "failed backward (is_sum_taken stays)"),
      further("V04", "V04"_bug,
              "reduce_to_owners sends a parameter to its first and its last owner alone, none in "
              "between"),
      further("V05", "V05"_bug,
              "the pending gradient is zeroed on the compute stream, where the reduction stream "
              "adds to it"),
      further("V06", "V06"_bug,
              "a model step forgets the boundary that set_gradient_accumulation_boundary set (it "
              "stays until changed)"),
      further("V07", "V07"_bug,
              "a synchronous gather does not wait for those of its parameters that are in flight "
              "already"),
      further("V08", "V08"_bug,
              "the look-ahead for reuse (stage3_max_reuse_distance) knows the own parameters of "
              "the coming modules, not their external ones"),
      further("V09", "V09"_bug,
              "reset_step compares the order of modules over the ranks also when the trace is "
              "complete"),
      further("V10", "V10"_bug,
              "inside coalesce_grad_reduction a leaf module gives no zeros for what this rank did "
              "not use"),
      further("V11", "V11"_bug, "a step (or load) does not give back what retained graphs keep"),
      further("V12", "V12"_bug,
              "of the graphs that one backward reaches only the first counts as begun"),
      further("V13", "V13"_bug,
              "the end of a function transform's graph task releases no leftovers any more (that "
              "of a failed one does)"),
      further("V14", "V14"_bug,
              "the linear function asks whether its weight was partitioned behind the gather and "
              "not before it, so it never partitions it again"),
      further("V15", "V15"_bug,
              "gradients are looked at for overflow only where the loss scale is dynamic"),
      further("V16", "V16"_bug, "a coalesce block left by an exception reduces nothing"),
      further("V17", "V17"_bug,
              "the final callback of a graph task without a prologue runs no epilogue even if "
              "hooks of it added work"),
      further("V18", "V18"_bug,
              "engine.scale() counts as called up to the boundary's backward instead of for one "
              "backward"),
      further("V19", "V19"_bug,
              "only parameters that are trained are broadcast from rank 0 when the engine is made"),
      further("V20", "V20"_bug, "a load does not drop the unfinished window first"),
  };
}

std::vector<Entry> third_twenty() {
  return {
      further("W01", "W01"_bug, "a local sum stays where it is after it was reduced"),
      further("W02", "W02"_bug, "step() does not forget which parameters were used"),
      further("W03", "W03"_bug,
              "dropping the window forgets the local sums of earlier micro-batches"),
      further("W04", "W04"_bug,
              "loading sets the hysteresis to the configured one instead of the saved one"),
      further("W05", "W05"_bug,
              "a backward in no_sync or coalesce_grad_reduction does not mark the window as having "
              "scaled gradients"),
      further(
          "W06", "W06"_bug,
          "the count of backwards since the last step is reset only where the step was applied"),
      further(
          "W07", "W07"_bug,
          "a released parameter's memory is given back without record_use on the compute stream"),
      further("W08", "W08"_bug,
              "a failed outermost task abandons gradients only where a hook told of work, not "
              "where only a prologue ran"),
      further("W09", "W09"_bug, "step() is refused only when no graph task is open"),
      further("W10", "W10"_bug, "a forward that throws is not ended for the optimizer"),
      further("W11", "W11"_bug, "the loss is scaled in half precision"),
      further("W12", "W12"_bug, "registering gradient hooks anew leaves the old ones"),
      further("W13", "W13"_bug,
              "loading restores the step count of the first parameter group alone"),
      further("W14", "W14"_bug,
              "the end of engine.backward sets the count of managed backwards to 0 instead of one "
              "less"),
      further("W15", "W15"_bug,
              "a rank that failed returns before the all-reduce that tells the others"),
      further("W16", "W16"_bug, "a new external parameter does not invalidate the complete trace"),
      further("W17", "W17"_bug,
              "a last backward that does not retain the graph does not end what was kept for it"),
      further(
          "W18", "W18"_bug,
          "a gathered_parameters context left by an exception keeps its mark on the parameters"),
      further("W19", "W19"_bug,
              "a fetch does not install parameters without elements but gathers them"),
      further("W20", "W20"_bug,
              "with torch_autocast all parameters communicate in its dtype, not those of safe "
              "modules alone"),
  };
}

}  // namespace

std::span<const Entry> group_unseen() {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> entries;
    for (const auto& twenty : {first_twenty(), second_twenty(), third_twenty()})
      entries.insert(entries.end(), twenty.begin(), twenty.end());
    return entries;
  }();
  return all;
}

}  // namespace zeroproof::museum

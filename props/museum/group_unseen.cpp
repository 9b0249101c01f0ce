// Further faults, twenty at a time and of no catalogue: written into the engine by somebody who had
// not seen the generator and the judges, and hunted as they are (docs/FURTHER_FAULTS.md). Nothing
// may be tuned to them.
#include <span>
#include <string>
#include <vector>

#include "props/museum/entry.h"
#include "props/museum/unseen_fault.h"
#include "props/registry.h"
#include "props/run_properties.h"

namespace zeroproof::museum {
namespace {

constexpr UnseenFault kFaults[] = {
    {"U01", "stage 0 leaves the place of a parameter without a gradient as is"},
    {"U02", "without pre-division nothing divides the all-reduced bucket of stages 1 and 2"},
    {"U03", "the epilogue stops at the first bucket that is empty"},
    {"U04", "the norm is that of the first parameter group alone"},
    {"U05", "a load refreshes the master weights and not those to compute with"},
    {"U06", "a load of stage 3 reads a short last shard from rank times its own length"},
    {"U07", "all-reduced gradients of stage 3 are cut into slices without the padding between"},
    {"U08", "the epilogue waits for reductions before it starts the last ones"},
    {"U09", "the computation waits for a gather, and not for its unpacking"},
    {"U10", "a forward's end releases what was gathered for its backward"},
    {"U11", "gathering ahead goes on when its room is exactly full"},
    {"U12", "a failed backward of stages 1 and 2 keeps what it has reduced"},
    {"U13", "a forward that throws leaves its modules' uses of parameters"},
    {"U14", "a step that overflows returns before the loss scale is lowered"},
    {"U15", "a gradient that is clipped is not unscaled"},
    {"U16", "stage 3 offloads the last window's gradient of a parameter that had none"},
    {"U17", "stage 1 adds a local sum at the boundary that hooks added already"},
    {"U18", "a no_sync block that throws stays open"},
    {"U19", "a checkpoint in a backward inside forward counts as the user's backward"},
    {"U20", "every owner of a part of a parameter is sent the parameter's first elements"},
    {"U21",
     "Stage 0 divides its all-reduced gradients by all ranks of the data group, those that share a "
     "sequence included, instead of by the replicas alone."},
    {"U22",
     "Stage 1 with overlap, CPU offload and an accumulation dtype other than the model's: a hook "
     "at the boundary takes the accumulated gradient for granted, and throws where the window has "
     "no earlier micro-batch (accumulation steps of 1)."},
    {"U23",
     "A gathered_parameters context without a modifier does not partition again what it gathered: "
     "the whole parameters stay in memory until something else releases them."},
    {"U24",
     "The dynamic loss scaler does not refuse an overflow at the smallest scale (no E22): steps "
     "are skipped for ever and nobody is told."},
    {"U25",
     "zero_grad() clears gradients at a gradient accumulation boundary alone; in the middle of a "
     "managed window it does nothing, and what was to be thrown away is trained."},
    {"U26",
     "Loading a checkpoint restores the scale of the autocast's GradScaler but not its growth "
     "tracker: after a resume the scale grows later than in a training that was not interrupted."},
    {"U27",
     "Stages 1 to 3 with bf16 and no communication_data_type reduce gradients in float16, the "
     "default of half precision, instead of in bf16: what is above 65504 becomes infinite on the "
     "wire, what is tiny becomes zero, all else rounds otherwise."},
    {"U28",
     "With offload_optimizer the update's low-precision copy reaches the parameters of the first "
     "parameter group alone: later groups train in their masters while the forward goes on with "
     "their old values."},
    {"U29",
     "Stages 1 and 2 do not restore the optimizer's step from a checkpoint: moments are loaded, "
     "bias correction goes on from the loading engine's own count (0 in a new one)."},
    {"U30",
     "The fp16 optimizer of stage 0 returns behind its overflow check also when nothing "
     "overflowed: the step is told as applied, with a norm, and no parameter is updated."},
    {"U31",
     "ZeRO (stages 1 to 3) ignores a static fp16 loss_scale and scales dynamically from "
     "initial_scale_power: another scale, which moves, and steps skipped for overflows that the "
     "static one would not have."},
    {"V01",
     "abandoning a failed backward drops the local sums of earlier micro-batches, too, "
     "and not its own .grad alone"},
    {"V02",
     "the whole gradient is cut into floor(n / ranks) pieces, so the norm leaves out the "
     "tail"},
    {"V03",
     "abandon_gradients does not reset what is known of each parameter's progress in the "
     "failed backward (is_sum_taken stays)"},
    {"V04",
     "reduce_to_owners sends a parameter to its first and its last owner alone, none in "
     "between"},
    {"V05",
     "the pending gradient is zeroed on the compute stream, where the reduction stream "
     "adds to it"},
    {"V06",
     "a model step forgets the boundary that set_gradient_accumulation_boundary set (it "
     "stays until changed)"},
    {"V07",
     "a synchronous gather does not wait for those of its parameters that are in flight "
     "already"},
    {"V08",
     "the look-ahead for reuse (stage3_max_reuse_distance) knows the own parameters of "
     "the coming modules, not their external ones"},
    {"V09",
     "reset_step compares the order of modules over the ranks also when the trace is "
     "complete"},
    {"V10",
     "inside coalesce_grad_reduction a leaf module gives no zeros for what this rank did "
     "not use"},
    {"V11", "a step (or load) does not give back what retained graphs keep"},
    {"V12", "of the graphs that one backward reaches only the first counts as begun"},
    {"V13",
     "the end of a function transform's graph task releases no leftovers any more (that "
     "of a failed one does)"},
    {"V14",
     "the linear function asks whether its weight was partitioned behind the gather and "
     "not before it, so it never partitions it again"},
    {"V15", "gradients are looked at for overflow only where the loss scale is dynamic"},
    {"V16", "a coalesce block left by an exception reduces nothing"},
    {"V17",
     "the final callback of a graph task without a prologue runs no epilogue even if "
     "hooks of it added work"},
    {"V18",
     "engine.scale() counts as called up to the boundary's backward instead of for one "
     "backward"},
    {"V19", "only parameters that are trained are broadcast from rank 0 when the engine is made"},
    {"V20", "a load does not drop the unfinished window first"},
    {"V21",
     "With one rank nothing is counted as sharded, so what was changed inside gathered_parameters "
     "with a modifier_rank is not written back to the slice at the context's end (stage 3)."},
    {"V22",
     "A tensor of no elements at the end of the gradients' list ends the norm's batch before it "
     "was evaluated: the sum of squares is 0, the norm is told as 0 and nothing is clipped."},
    {"V23",
     "With one rank the reduction's second division is left out together with the averaging, "
     "though the first one (gradient_predivide_factor) was done: gradients are too small by that "
     "factor (stage 0)."},
    {"V24",
     "The result of the last all-gather is held until the next gather begins, as the overlap of "
     "the copy-in wants it, and nobody drops it at the end of a forward, a backward or a step "
     "(stage 3)."},
    {"V25",
     "Decoupled weight decay is applied to the whole parameter list once a parameter group, not to "
     "each group's own: with N groups every parameter decays N times a step (stages 0 to 2)."},
    {"V26",
     "Loading a checkpoint casts the optimizer's step count to the parameters' dtype like every "
     "other state: in bf16 257 becomes 256, and bias corrections and all later counts are off."},
    {"W01", "a local sum stays where it is after it was reduced"},
    {"W02", "step() does not forget which parameters were used"},
    {"W03", "dropping the window forgets the local sums of earlier micro-batches"},
    {"W04", "loading sets the hysteresis to the configured one instead of the saved one"},
    {"W05",
     "a backward in no_sync or coalesce_grad_reduction does not mark the window as having "
     "scaled gradients"},
    {"W06", "the count of backwards since the last step is reset only where the step was applied"},
    {"W07", "a released parameter's memory is given back without record_use on the compute stream"},
    {"W08",
     "a failed outermost task abandons gradients only where a hook told of work, not "
     "where only a prologue ran"},
    {"W09", "step() is refused only when no graph task is open"},
    {"W10", "a forward that throws is not ended for the optimizer"},
    {"W11", "the loss is scaled in half precision"},
    {"W12", "registering gradient hooks anew leaves the old ones"},
    {"W13", "loading restores the step count of the first parameter group alone"},
    {"W14",
     "the end of engine.backward sets the count of managed backwards to 0 instead of one "
     "less"},
    {"W15", "a rank that failed returns before the all-reduce that tells the others"},
    {"W16", "a new external parameter does not invalidate the complete trace"},
    {"W17", "a last backward that does not retain the graph does not end what was kept for it"},
    {"W18", "a gathered_parameters context left by an exception keeps its mark on the parameters"},
    {"W19", "a fetch does not install parameters without elements but gathers them"},
    {"W20",
     "with torch_autocast all parameters communicate in its dtype, not those of safe "
     "modules alone"},
    {"W21",
     "Gradient clipping is applied to the accumulated sum behind every backward of a window (with "
     "a collective norm each), and not once before the update."},
    {"W22",
     "Stage 3 on a single data-parallel rank takes the window's sum so far as part of what a "
     "further micro-batch's reduction brings: what was accumulated is doubled in every micro-batch "
     "after the first."},
    {"W23",
     "A forward without gradients (an evaluation) between two micro-batches of a window drops what "
     "the window has accumulated."},
    {"W24",
     "Stage 3: loading a checkpoint restores the optimizer's moments of the first parameter group "
     "alone; those of the other groups start from scratch, with the loaded step count."},
    {"W25",
     "Local sums (stages 0 and 1) are divided by the loss scale behind every backward that is no "
     "boundary, and the whole window once more before the update: with loss scaling only the last "
     "micro-batch counts fully."},
    {"W26",
     "Stages 0 to 2 with offload_optimizer: loading a checkpoint renews the module's parameters, "
     "but not the master copies on the host; the next step updates the stale ones and writes them "
     "over what was loaded."},
    {"X01",
     "a parameter group of which this rank has no local gradient is left out of the boundary's "
     "all-reduce, so ranks whose data takes different branches issue different collectives"},
    {"X02",
     "a forward that throws leaves itself counted as open, so every later backward is taken "
     "for one inside a forward and its gradients get loss scale / GAS once more at the leaf"},
    {"X03",
     "asking for gradients before anything is reduced leaves the windows marked as begun, so "
     "the next question of the same window no longer sees the local sums"},
    {"X04",
     "the count of backwards since the last step survives a load, though their gradients are "
     "dropped"},
    {"X05",
     "a load does not give up parameters that are whole, so persistent ones go on with the "
     "weights of before the load until the next step"},
    {"X06",
     "an engine whose gradients come in another engine's backward keeps what it has when that "
     "backward fails"},
    {"X07", "zero_grad does not forget that the window has scaled gradients"},
    {"X08",
     "an overflow that the hysteresis tolerates does not begin a new stretch of stable steps, "
     "so the scale grows too early after it"},
    {"X09",
     "the epilogue of engine.backward settles one pending epilogue and not all that the graph "
     "tasks of that backward have opened"},
    {"X10",
     "an autocast region around forward is not shut out of an engine that has no autocast of "
     "its own"},
    {"X11",
     "the room for persistent parameters is compared without the parameter that is to take "
     "it, so the one that goes beyond it still becomes persistent"},
    {"X12",
     "up to where each parameter was fetched survives the step, so from the third iteration "
     "on every parameter counts as fetched for its backward already and is not released in "
     "forward"},
    {"X13",
     "the epilogue waits for the reduction stream at the accumulation boundary alone, so an "
     "earlier micro-batch is added to the window before its reduction is done"},
    {"X14", "parameters that are persistent are left out of the broadcast from the modifier rank"},
    {"X15",
     "a rank that has changed nothing leaves the context without taking part in the ranks' "
     "agreement"},
    {"X16",
     "a group that had no gradient in this window is not gathered after the update, though "
     "momentum has moved it"},
    {"X17",
     "the local sum of a window is kept in the gradient's dtype and not in the accumulation "
     "dtype"},
    {"X18",
     "the first sum of a coalesced block stays .grad as well, so the second backward adds to "
     "both"},
    {"X19", "no_sync inside no_sync is not refused, and the inner one's end ends the outer one"},
    {"X20",
     "the local sum of the micro-batches before is given up when it is packed and not when "
     "the backward is complete"},
    {"X21",
     "Whether gradients overflow is asked of their sum, rounded to the model's dtype: finite fp16 "
     "gradients whose sum is above 65504 count as an overflow (skipped step, lowered scale)."},
    {"X22",
     "Stage 3 with an offloaded optimizer: full_gradients() reads the update's float32 gradient on "
     "the host, which is filled only by the step, and not the window: between backward and step it "
     "has zeros."},
    {"X24",
     "With maximize Adam's coupled weight decay is turned round together with the gradient, so it "
     "makes the weights grow: the decay is folded in before the sign."},
    {"X25",
     "The end of an evaluation (a forward of the engine without gradients) inside a window is "
     "taken as the end of the training data: the micro-batches behind it are all boundaries."},
    {"X26",
     "The gradient scaler of fp16 autocast grows beyond the largest float32 into an infinity, from "
     "which every later step is skipped for good."},
    {"Y01", "the padding behind the gradients of stage 0 is not cleared, and counts in the norm"},
    {"Y02", "once the window of good steps is full, the loss scale grows in every step"},
    {"Y03", "a step of stage 3 that overflows does not gather persistent parameters again"},
    {"Y04", "the computation never waits for the all-gathers that run beside an update"},
    {"Y05",
     "a local sum is added once more for a parameter that comes again behind a flush of the "
     "same backward"},
    {"Y06", "which parameters had a gradient is that of the last backward, not of the window"},
    {"Y07",
     "a backward that fails before any hook of the engine leaves its scale() valid for the "
     "next one"},
    {"Y08", "parameters that are whole already fill the prefetch bucket"},
    {"Y09", "the changes of rank 0 are taken over, whoever modifier_rank names"},
    {"Y10",
     "the first read of another module's parameter is no use of it, so its owner releases it "
     "under the reader"},
    {"Y11", "gradients of a backward inside a forward get no loss scale"},
    {"Y12",
     "live parameters count without the rank's own part, so that ranks gather different "
     "things ahead"},
    {"Y13", "an update by parts uses the moments of the slice's beginning for every part"},
    {"Y14", "stage 0 ignores communication_data_type"},
    {"Y15", "parameters that are not trained are not loaded from a checkpoint"},
    {"Y16", "a step that overflows counts for Adam's bias correction all the same"},
    {"Y17", "with an offloaded optimizer the window of gradients is on the device"},
    {"Y18", "the host waits for the newest reduction instead of the oldest of those under way"},
    {"Y19", "a forward of skipped frames claims only what it gathered itself"},
    {"Y20", "behind a step that overflowed the window counts as having scaled gradients still"},
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
    for (const auto faults :
         {std::span<const UnseenFault>(kFaults), unseen_faults_z(), unseen_faults_t(),
          unseen_faults_s(), unseen_faults_r(), unseen_faults_q()})
      for (const UnseenFault& fault : faults)
        entries.push_back({.id = fault.id,
                           .fault = fault.text,
                           .properties = any_property(),
                           .plant = planted(Departure::of(fault.id))});
    return entries;
  }();
  return all;
}

}  // namespace zeroproof::museum

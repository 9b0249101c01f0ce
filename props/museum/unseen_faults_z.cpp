#include "props/museum/unseen_fault.h"

namespace zeroproof::museum {
namespace {

constexpr UnseenFault kFaults[] = {
    {"Z01", "a reduced gradient counts as contributed only on the ranks that own a part of it"},
    {"Z02", "a second reduction of a window replaces the first in stage 0 instead of being added"},
    {"Z03",
     "with another wire dtype the average behind the all-reduce is left out: gradients are "
     "summed"},
    {"Z04",
     "a step that is skipped for overflow does not count its micro-step, so later windows "
     "begin too early"},
    {"Z05",
     "a nested backward that fails and is caught drops the gradients of the backward around it"},
    {"Z06",
     "the end of a nested graph task does not hand its unreduced gradients on to the task "
     "around it"},
    {"Z07",
     "the room for parameters of retained graphs is not given back when the last such graph "
     "ends"},
    {"Z08",
     "a module that runs beyond the end of the recorded order does not make the order invalid"},
    {"Z09",
     "a gather context that an exception ends keeps each rank's own changes when it has a "
     "modifier_rank"},
    {"Z10", "a forward that fails gives persistent parameters up, too"},
    {"Z11",
     "an oversized gradient's memory is given back while the reduction stream has still to "
     "read it"},
    {"Z12",
     "only the first part of an update is waited for by its all-gather, later parts race with "
     "theirs"},
    {"Z13", "the buffers of the last gradient reduction stay in memory until the next one"},
    {"Z14", "a load restores the loss scaler without the iteration of its last overflow"},
    {"Z15",
     "the loss scale shrinks below min_loss_scale where halving jumps over it, and E22 never "
     "comes"},
    {"Z16", "Adam's L2 decay is added to the bf16 gradient itself and rounded there"},
    {"Z17", "saving again under a tag removes other checkpoints whose tags begin with that tag"},
    {"Z18", "zero_grad leaves what a coalesced block has added up so far in stage 3"},
    {"Z19",
     "the update leaves sub-groups out that had no gradient: their moments and steps stand "
     "still"},
    {"Z20",
     "reading the full gradients drops the window where one parameter group had no gradient"},
    {"Z21",
     "the loss of a backward inside the forward is not divided by the accumulation steps in "
     "the boundary micro-batch"},
    {"Z22",
     "a failed engine.backward inside another engine's leaves the process in managed mode: "
     "1/GAS is missing later"},
    {"Z23",
     "a backward nested in the backward of a loss inside the forward gets an epilogue of its "
     "own"},
    {"Z24",
     "without managed accumulation, backwards inside no_sync are not counted in global_samples"},
    {"Z25",
     "the end of a coalesced block forgets what earlier backwards of the window have reduced"},
    {"Z26",
     "with overlap, later groups lose the local sums of parameters unused in the last "
     "micro-batch"},
    {"Z27",
     "a gradient alone in its bucket, not the first one of the backward, is reduced to its "
     "owners undivided"},
    {"Z28", "a parameter without elements counts as unused under offload and is refused with E15"},
    {"Z29", "with overlap, the buffer of reduced slices is not given back between micro-batches"},
    {"Z30",
     "a frozen persistent parameter loses what gathered_parameters changed at the next step"},
    {"Z31",
     "a parameter of which a rank owns no element is not gathered ahead there: ranks issue "
     "other all-gathers"},
    {"Z32",
     "under skipped frames a change in gathered_parameters is lost if a graph still claims "
     "the parameter"},
    {"Z33",
     "without consecutive_hysteresis the growth of the loss scale does not restore the "
     "hysteresis"},
    {"Z35", "the first step behind a skipped one is not clipped"},
    {"Z37",
     "with overlap, each part of an update counts as an optimizer step: Adam's bias "
     "correction is too weak"},
    {"Z38", "a load of an earlier checkpoint leaves the optimizer's step count at the later one"},
    {"Z39",
     "behind a load, frozen persistent parameters compute with their old values until the "
     "next step"},
    {"Z40",
     "behind a failed backward override_loss_scale is accepted though earlier gradients are "
     "in the window"},
    {"Z41", "gradients that are summed, not averaged, stay divided by the predivide factor"},
    {"Z42", "a failed backward empties the bucket of the first wire dtype alone"},
    {"Z43", "in stage 0 the second reduction of a window overwrites the first"},
    {"Z44", "gathering ahead in backward does not keep to max_live_parameters"},
    {"Z45", "the recorded order of fetches leaves out external parameters"},
    {"Z46", "a failed micro-batch leaves its pending part marked where the window has begun"},
    {"Z47", "frozen parameters never count as persistent, however small"},
    {"Z48", "an overflow at the smallest scale is refused though hysteresis would tolerate it"},
    {"Z49", "an overridden loss scale goes on moving where the scaler was dynamic"},
    {"Z50", "frozen parameters are not converted to the model's dtype"},
    {"Z51", "a save under a tag that exists does not become the latest"},
    {"Z52", "a save that fails on the writing rank is a success on the others"},
    {"Z53", "without contiguous_gradients a failed backward leaves its .grad behind"},
    {"Z54", "after a backward with scale_wrt_gas false manual backwards are not divided either"},
    {"Z55", "a forward that throws stays open for the hook policy"},
    {"Z56", "SGD without momentum copies the model's weights before it updates the masters"},
    {"Z57", "with one rank the computation does not wait for the copy of a gathered parameter"},
    {"Z58", "the flat buffer of a direct gather is not kept for the stream that unpacks it"},
    {"Z59", "parameters kept for a retained graph are not given back when the graph goes"},
    {"Z60", "with offload_param alone an update stays in the masters and never reaches the slices"},
    {"Z61",
     "zero_grad() forgets that scale() was called, as if the scaled loss belonged to the "
     "window before"},
    {"Z62",
     "allgather_bucket_size is taken for bytes when an overlapped gather is cut into parts, "
     "so there are as many times more collectives as an element has bytes"},
    {"Z63",
     "a load works out the number of samples from the steps and the ranks of now, instead of "
     "taking the one that was saved"},
    {"Z64",
     "the engine enters its autocast region only where a graph is recorded, so an evaluation "
     "runs in full precision"},
    {"Z65",
     "the bucket's list of oversized gradients is not emptied with its entries when gradients "
     "are contiguous, so later buckets believe to have one: they are reduced parameter by "
     "parameter, and the gradients stay in memory"},
    {"Z66",
     "the buffer into which a getter or a save gathers whole values is kept for the next call "
     "instead of given back"},
    {"Z67",
     "when the epilogue of engine.backward fails, behind the graph task's end, what its hooks "
     "have added is forgotten by the policy but not abandoned by the optimizer"},
    {"Z68",
     "a step that is skipped for an overflow gathers the parameters all the same, though "
     "nobody changed them"},
    {"Z69",
     "a save under a tag that is there removes the older generation before `latest` names the "
     "new one"},
    {"Z70",
     "override_loss_scale() looks only for an engine.backward under way, no longer for a "
     "backward of the user's own"},
    {"Z71",
     "the eager fallback releases what a finished graph claimed only when no other graph is "
     "outstanding any more"},
    {"Z72",
     "what a retained graph keeps whole is reclaimed by any call of the module, not by the "
     "call that holds it alone"},
    {"Z73", "full gradients read inside a coalesced block are not divided by the loss scale"},
    {"Z74",
     "a backward that fails takes the window's earlier gradients of the parameters that it "
     "had reduced already along"},
    {"Z75",
     "the reuse distance is counted in the elements of this rank's slices, not in those of "
     "the parameters that become live"},
    {"Z76", "ranks compare how many modules they recorded, and no longer which"},
    {"Z77", "the check for overlapping contexts looks at the first parameter alone"},
    {"Z78",
     "loading a checkpoint leaves the low-precision slices as they were where a sub group's "
     "slices lie behind one another"},
    {"Z79", "a gather of a module hook that fails leaves its parameters in flight"},
    {"Z80", "a module whose forward throws is not taken from the stack, only those below it are"},
};

}  // namespace

std::span<const UnseenFault> unseen_faults_z() {
  return kFaults;
}

}  // namespace zeroproof::museum

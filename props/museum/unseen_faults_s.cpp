#include "props/museum/unseen_fault.h"

namespace zeroproof::museum {
namespace {

constexpr UnseenFault kFaults[] = {
    {"S01",
     "a leaf module's own parameters are collected from itself and its direct children alone, so "
     "those of its grandchildren, which have no hooks below a leaf, are fetched by nobody"},
    {"S02",
     "a gather context without modifier_rank that refuses a modification (F7) takes it over into "
     "the slices all the same"},
    {"S03",
     "load_checkpoint of stage 3 finds the optimizer states of a parameter by the beginning of "
     "their names, so a parameter gets the states of another one of its size whose name begins "
     "with its own"},
    {"S04",
     "step() where the user has paused the boundary by set_gradient_accumulation_boundary(false), "
     "at what the counters call the window's last micro-step, ends the window: its gradients are "
     "dropped"},
    {"S05",
     "an exception of a child module's forward that its parent catches gives up the parent and all "
     "around it, too, as if nobody caught it on the way"},
    {"S06",
     "stages 1 and 2 with overlap_comm, where update and gather go by parts: the first part alone "
     "is divided by loss scale and clipping"},
    {"S07",
     "the epilogue of a backward inside no_sync does not collect, so its gradient stays in .grad, "
     "where a later backward that fails takes it along"},
    {"S08",
     "zero_grad drops the values that a retained graph keeps, so its next backward gathers again "
     "what it had"},
    {"S09",
     "with skipped frames a guard's read gathers its parameter when no forward is under way, where "
     "it should gather nothing"},
    {"S10",
     "the cast of a gradient to the master's dtype that an update needs is kept behind the step"},
    {"S11",
     "the loss scale of fp16 torch_autocast (GradScaler) stops at 1, the floor that only the fp16 "
     "scaler has"},
    {"S12", "save_checkpoint drops the gradients of the window that is under way"},
    {"S13",
     "the end of an inner gather context forgets that the context around it has gathered its own "
     "parameters"},
    {"S14", "zero_grad() drops the values that a retained graph keeps in stage 3"},
    {"S15",
     "the gradient norm of stage 3 counts persistent parameters on rank 0 alone, as if every rank "
     "had their whole gradient; each has a slice"},
    {"S16",
     "an engine that needs a loss scale does not ask for it (E2) where another engine's backward "
     "goes through it"},
    {"S17",
     "a boundary without a backward since the last step is left out: no update by the moments, no "
     "count; and a rank that had no data does not come to the step's reduction"},
    {"S18", "backward(create_graph) does not retain the graph that it goes through"},
    {"S19",
     ".grad of a trainable parameter that is in no parameter group is never cleared in stages 0 to "
     "2: memory stays and it adds up"},
    {"S20",
     "whether no_sync holds for a backward is decided by where its forward was (as in DDP), not by "
     "where the backward is"},
    {"S21",
     "a loss scale that is set after initialization (override_loss_scale) does not register the "
     "gradient hooks that apply it where nothing was scaled before, so a backward inside the "
     "forward goes unscaled"},
    {"S22",
     "no_sync is refused in every ZeRO stage from 1 on, though stage 1 keeps whole gradients"},
    {"S23", "the overflow check counts infinities and no NaN"},
    {"S24",
     "the latest checkpoint is taken to be the last of the tags as texts (\"global_step9\" behind "
     "\"global_step11\"), and not what was saved last"},
    {"S25",
     "each parameter group is clipped by the norm of its own gradients, and not by that of all "
     "(stages 0 to 2)"},
    {"S26", "stage 0 reduces gradients in every micro-batch, and not at the boundary alone"},
    {"S27",
     "zero_grad() clears .grad alone, and leaves local sums and what is reduced already in the "
     "window"},
    {"S28",
     "the dtype of gradients on the wire follows the default list of safe modules, whatever "
     "torch_autocast.lower_precision_safe_modules says"},
    {"S29",
     "the divided loss that backward() returns is made with gradients enabled, so it keeps its "
     "graph"},
    {"S30",
     "stage 3 looks for overflow sub-group by sub-group, so that those before the one that "
     "overflows have been updated when the step is skipped"},
    {"S31",
     "stages 0 to 2 clip every parameter group by the norm of its own gradients instead of one "
     "norm over all groups"},
    {"S32",
     "under torch_autocast an empty lower_precision_safe_modules list is taken for one that is not "
     "given, so the default classes travel in low precision"},
    {"S33",
     "step() refuses (E23) while any engine of the process is inside its backward, not just its "
     "own"},
    {"S34",
     "in stages 0 to 2 rank 0's weights are broadcast only after the optimizer has made its master "
     "copies"},
    {"S35",
     "stage 3 divides by the number of ranks behind the reduce-scatter instead of before it, so "
     "that the float16 sum overflows where the mean does not"},
    {"S36",
     "stage 1 reduces gradients in every micro-batch, not once at the accumulation boundary"},
    {"S37",
     "a load without a tag takes the checkpoint whose name sorts last as text instead of the one "
     "that `latest` names"},
    {"S38",
     "zero_grad() by the user sets micro_steps back to the beginning of the accumulation window"},
    {"S39", "the engine holds on to the outputs of its last forward, and so to their graph"},
    {"S40",
     "in save_checkpoint only the rank that writes collects the partitioned state, though "
     "collecting it is a collective"},
};

}  // namespace

std::span<const UnseenFault> unseen_faults_s() {
  return kFaults;
}

}  // namespace zeroproof::museum

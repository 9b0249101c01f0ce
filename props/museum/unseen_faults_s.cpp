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
};

}  // namespace

std::span<const UnseenFault> unseen_faults_s() {
  return kFaults;
}

}  // namespace zeroproof::museum

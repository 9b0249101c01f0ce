#include "props/museum/unseen_fault.h"

namespace zeroproof::museum {
namespace {

constexpr UnseenFault kFaults[] = {
    {"R01",
     "With stage 0 and prescale_gradients the sum is divided by the ranks after the "
     "all-reduce too, so gradients are divided twice."},
    {"R02",
     "step() between boundaries (and after an overflow) returns the gradient norm of the last "
     "window instead of none."},
    {"R03",
     "engine.backward returns the loss as it was differentiated, with the loss scale in it."},
    {"R04",
     "In stages 0 to 2 a checkpoint that is loaded into an engine that has not taken a step "
     "leaves its moments at zero, while weights and step counts are loaded."},
    {"R05",
     "In stage 3 reduce_bucket_size bounds the slices that a rank keeps instead of the "
     "gradients themselves, so a bucket takes as many times the elements as there are ranks."},
    {"R06",
     "Each backward of a micro-batch counts as a micro-step of its own when step() is called, "
     "so a second loss moves the boundary."},
    {"R07",
     "The update does not take out a loss scale that is the caller's own (override_loss_scale "
     "or custom_loss_scale), and clips by the scaled norm."},
    {"R08", "The default tag of a checkpoint counts micro-steps instead of global steps."},
    {"R09",
     "Stage 3 forgets the parameters of a group that are left when its last full sub-group is "
     "closed: they are neither reduced nor updated, and have no master copy."},
    {"R10", "A backward that failed counts as one of the window."},
    {"R11",
     "step() inside a window returns the outcome of the last boundary's step in place of one "
     "that did nothing"},
    {"R12",
     "only the first output of a forward that has a graph gets the engine's hook, so a manual "
     "backward from another output alone has no prologue"},
    {"R13", "engine.backward returns the loss multiplied by the loss scale"},
    {"R14",
     "a class in leaf_module/classes that the model has not is let pass as long as another "
     "class of the list is there"},
    {"R15",
     "all forwards count as one graph for retained parameters, so that a backward of another "
     "forward that does not retain drops what a retained graph keeps"},
    {"R16",
     "with offload_optimizer the CPU Adam decays weights decoupled (AdamW), although "
     "adam_w_mode is false"},
    {"R17",
     "stage 3 with torch_autocast gathers parameters in the dtype in which they are stored "
     "and not in their communication dtype"},
    {"R18",
     "stage 3 lets a gradient join a bucket that has no room for it, because it asks whether "
     "the bucket is full already and does not count what comes"},
    {"R19",
     "a frozen parameter that is listed in a parameter group becomes one of the optimizer's, "
     "and decays"},
    {"R20",
     "a checkpoint stores the engine's global steps, skipped ones too, as the optimizer's "
     "step"},
    {"R21",
     "gathered_parameters takes modifier_rank 0 for none, so that what rank 0 changes inside "
     "is not taken over"},
    {"R22", "engine.backward returns the loss multiplied by the loss scale"},
    {"R23",
     "the end of one retained graph drops the values that other retained graphs keep, so that "
     "their next backward gathers again"},
    {"R24",
     "classes of leaf_module that are given with their module path match no module, and "
     "nothing becomes a leaf"},
    {"R25", "checkpoints hold Adam's learning rate for parameter groups that SGD updates"},
    {"R26",
     "a forward at the first micro-step of a window clears the gradients, so that of several "
     "forwards and backwards before one step the last alone counts"},
    {"R27",
     "with torch_autocast a configured communication_data_type is used for all parameters, in "
     "place of autocast's dtype for safe modules and each parameter's own for others"},
    {"R28",
     "set_gradient_accumulation_boundary(false) is accepted without "
     "managed_gradient_accumulation, and no step updates anything from then on"},
    {"R29", "a step that overflows is not counted in global_steps"},
    {"R30",
     "a trace that was invalidated is never recorded again, so that nothing is gathered ahead "
     "any more"},
};

}  // namespace

std::span<const UnseenFault> unseen_faults_r() {
  return kFaults;
}

}  // namespace zeroproof::museum

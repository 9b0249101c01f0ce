#include "props/museum/unseen_fault.h"

namespace zeroproof::museum {
namespace {

constexpr UnseenFault kFaults[] = {
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
};

}  // namespace

std::span<const UnseenFault> unseen_faults_r() {
  return kFaults;
}

}  // namespace zeroproof::museum

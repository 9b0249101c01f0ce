#include "props/museum/unseen_fault.h"

namespace zeroproof::museum {
namespace {

constexpr UnseenFault kFaults[] = {
    {"T01",
     "what no graph claims any more is released by the eager fallback although a gather context of "
     "the user has it open"},
    {"T02",
     "a checkpoint's loss scale is restored whatever kind of scale the configuration asks for"},
    {"T03", "load_checkpoint drops the window before it knows that there is a checkpoint"},
    {"T04",
     "the first parameter that does not fit into stage3_model_persistence_threshold ends the "
     "search for persistent ones, smaller ones behind it included"},
    {"T05",
     "where nothing is reduced yet full_gradients moves on in its list only for parameters that "
     "have a gradient"},
    {"T06",
     "the error of a custom loss scale that cannot be used is lost, and the engine is made without "
     "it"},
    {"T07", "scale() notes that it was called before it looks at the loss"},
    {"T08",
     "a module's parameters are released before those that it returns are adopted by the module "
     "around it"},
    {"T09",
     "the event that a bucket's buffer is free is recorded behind the collective, before the "
     "rank's own part is copied out of it"},
    {"T10", "a gather context gathers before it checks that it overlaps no other"},
    {"T11",
     "the parts of a slice that are gathered while the next one is updated are counted rounded "
     "down, so the shorter last part is updated by its owner and never gathered"},
    {"T12",
     "initialize overwrites the validation's error with the outcome of setting the custom loss "
     "scale"},
    {"T13", "parameters that the caller left out of all groups join the first one"},
    {"T14",
     "engine.backward marks the loss as scaled and does not take the mark back, so the next manual "
     "backward passes for scaled"},
    {"T15",
     "the sanity check of a gather context compares only what this rank owns, so a change in "
     "another rank's slice is not seen"},
    {"T16",
     "a parameter kept for a retained graph that is gathered anew still counts as kept, and is "
     "emptied under its user when that graph goes"},
    {"T17", "a forward without grad invalidates the recorded order, as it has seen no backward"},
    {"T18",
     "the reduced slices are recorded on the reduction stream only where this rank reads some of "
     "them, so a rank that owns nothing of a bucket frees the output of a reduce-scatter under "
     "way"},
    {"T19",
     "clearing what a save that was cut short has left matches \"latest\" without its dot and "
     "removes the pointer to the last checkpoint"},
    {"T20",
     "a gradient that would fill the bucket exactly counts as too large for it, and the bucket is "
     "flushed before"},
    {"T21",
     "a module that reads another's parameter while a user's gathered_parameters has it whole is "
     "not noted as its user"},
    {"T22",
     "registering an external parameter again, which the module has already, invalidates the "
     "recorded order"},
    {"T23",
     "the first engine to go takes the memory-efficient linear with it, though other engines of "
     "the process still use it"},
    {"T24", "a suffix in leaf_module.name_suffixes matches anywhere in a module's name"},
    {"T25",
     "gathering for a user does not give back what its earlier collectives have made whole when a "
     "later one fails"},
    {"T26", "a graph task does not learn that a nested one with a prologue has failed inside it"},
    {"T27",
     "optimizer states of a checkpoint that the loading optimizer does not have are left out "
     "without an error"},
    {"T28",
     "override_loss_scale with the scale that is in force returns at once, and the scale stays the "
     "dynamic scaler's"},
    {"T29", "the second bucket buffer is allocated without overlap_comm, too"},
    {"T30",
     "gathering ahead does not count what retained graphs keep whole against "
     "stage3_max_live_parameters"},
    {"T31",
     "a loss scale that shrinks gets its whole hysteresis back, so every second overflow is only "
     "tolerated"},
    {"T32",
     "the gradient norm is asked for only where gradients are clipped, and a step then tells none"},
    {"T33", "no_sync is not asked in the last micro-batch of a window, which reduces all the same"},
    {"T34",
     "reductions to the owners divide by the number of ranks, also where gradients are to be "
     "summed"},
    {"T35", "a checkpoint's micro steps are rounded down to the window's beginning"},
    {"T36",
     "set_gradient_accumulation_boundary(false) does not hold back a boundary that the count has "
     "come to"},
    {"T37",
     "parameters in flight when the recorded order turns out wrong are waited for and then not "
     "given back"},
    {"T38",
     "the tag of a load is dropped on its way to the files, and the latest checkpoint is loaded"},
    {"T39",
     "the room for what a retained graph keeps is compared with each parameter alone, not with all "
     "that is kept"},
    {"T40",
     "a leaf module that is set after the engine was made gets no backward hook, and its "
     "parameters have no other"},
};

}  // namespace

std::span<const UnseenFault> unseen_faults_t() {
  return kFaults;
}

}  // namespace zeroproof::museum

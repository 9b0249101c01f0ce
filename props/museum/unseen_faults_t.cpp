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
};

}  // namespace

std::span<const UnseenFault> unseen_faults_t() {
  return kFaults;
}

}  // namespace zeroproof::museum

#pragma once

#include "props/train/case_spec.h"
#include "props/train/pass.h"

namespace zeroproof::train {

// What a generated program does around an engine's own calls, or between them.

// A forward of the first engine: in a checkpoint, in an autocast region of the user, or plain. The
// model must stay armed as it is until its backward.
TensorList surrounded_forward(const CaseSpec& spec, const MicroSpec& micro, Pass& pass,
                              const TensorList& inputs);

// Whether this rank is one that leaves out what the micro-batch skips.
bool skips_here(const MicroSpec& micro, Pass& pass);

// Whether this rank does not read what others read past their layers.
bool leaves_unread(const MicroSpec& micro, Pass& pass);

// Whether this is that rank of the world, or stands for a group that has it.
bool is_rank_of_world(const CaseSpec& spec, Pass& pass, int rank);

// Reads masters, which are recorded, and optimizer states of the first engine.
void record_masters(Pass& pass);

// Asks each engine for its gradients, twice: the second answer is the first. `is_known`: they are
// what this rank's backwards have added up, which is recorded.
void ask_for_gradients(const CaseSpec& spec, Pass& pass, bool is_known);

}  // namespace zeroproof::train

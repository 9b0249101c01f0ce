#pragma once

#include "props/train/case_spec.h"
#include "props/train/pass.h"

namespace zeroproof::train {

// What a generated program does with gradients itself, of all engines of the case.

// zero_grad.
void clear_gradients(const CaseSpec& spec, Pass& pass);
// Sets every .grad to what no backward has put there, and clears that.
void litter_gradients(const CaseSpec& spec, Pass& pass);
// How many parameters in no group have a .grad behind a step of stages 0 to 2, which clears all.
void record_left_out(const CaseSpec& spec, Pass& pass);
// Gradients that no engine takes are the user's own; the baseline has none.
void forget_left_out(const CaseSpec& spec, Pass& pass);

}  // namespace zeroproof::train

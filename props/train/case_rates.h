#pragma once

#include <cstdint>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"
#include "props/train/draws.h"

namespace zeroproof::train {

// In every fourth case, from a stream of its own and as far as it fits: what the draws before have,
// too rarely together. Transforms of plain models, tiles of stage 0, engines made anew, overflows
// with a good step between them, nested backwards over scattered gradients, graphs that are kept.
Additions rate_additions();

// What several draws begin with.

// The user's hook does this in every second micro-batch, and nothing in the others.
void set_interrupt(CaseSpec& spec, Draws& draws, Interrupt interrupt);
// Every module by itself: no checkpoint, nothing that is read past its layer.
void make_plain(CaseSpec& spec);
void take_two_heads(CaseSpec& spec);

}  // namespace zeroproof::train

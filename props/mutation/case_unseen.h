#pragma once

#include "props/reference/world.h"
#include "props/train/case_spec.h"

namespace zeroproof::mutation {

// What the program of a case does that no event tells.
reference::Unseen unseen_of(const train::CaseSpec& spec);

// Whether the program keeps memory of its own beyond a window: graphs, or what an abort leaves.
bool keeps_memory(const train::CaseSpec& spec);

// Which parameters modules read that do not own them, and which they return.
void mark_external_uses(const train::CaseSpec& spec, reference::World& world);

}  // namespace zeroproof::mutation

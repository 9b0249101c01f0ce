#pragma once

#include <span>
#include <vector>

#include "sim/search/trace_event.h"

namespace zeroproof {

// Sequences that are still to be explored from a state, as an ordered tree (Abdulla, Aronis,
// Jonsson, Sagonas: Source sets, 2017).
struct WakeupNode {
  TraceEvent event;
  std::vector<WakeupNode> children;
};

// Whether some continuation of `sequence` is equivalent to one that begins with `event`, which
// has to be enabled where the sequence begins.
bool is_weak_initial(const TraceEvent& event, std::span<const TraceEvent> sequence);

bool has_weak_initial(std::span<const TraceEvent> events, std::span<const TraceEvent> sequence);

// Adds `sequence` to the tree, unless a sequence that is there already leads to one equivalent to
// a continuation of it.
void insert(std::vector<WakeupNode>& tree, std::vector<TraceEvent> sequence);

}  // namespace zeroproof

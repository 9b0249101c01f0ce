#include "sim/search/wakeup_tree.h"

#include <algorithm>

namespace zeroproof {

bool is_weak_initial(const TraceEvent& event, std::span<const TraceEvent> sequence) {
  for (const TraceEvent& other : sequence) {
    if (other.process == event.process) return other.label == event.label;
    if (are_dependent(event, other)) return false;
  }
  return true;
}

bool has_weak_initial(std::span<const TraceEvent> events, std::span<const TraceEvent> sequence) {
  return std::any_of(events.begin(), events.end(),
                     [&](const TraceEvent& event) { return is_weak_initial(event, sequence); });
}

void insert(std::vector<WakeupNode>& tree, std::vector<TraceEvent> sequence) {
  std::vector<WakeupNode>* level = &tree;
  while (!sequence.empty()) {
    const auto child = std::find_if(level->begin(), level->end(), [&](const WakeupNode& node) {
      return is_weak_initial(node.event, sequence);
    });
    if (child == level->end()) break;
    if (child->children.empty()) return;  // whatever follows it will be explored
    const auto done = std::find_if(sequence.begin(), sequence.end(), [&](const TraceEvent& event) {
      return event.process == child->event.process;
    });
    if (done != sequence.end()) sequence.erase(done);
    level = &child->children;
  }
  for (const TraceEvent& event : sequence) {
    level->push_back({event, {}});
    level = &level->back().children;
  }
}

}  // namespace zeroproof

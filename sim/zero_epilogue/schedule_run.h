#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/zero_epilogue/reduced_search.h"

namespace zeroproof::zero_epilogue {

// What became of a wanted schedule.
struct ScheduleRun {
  Property violated = Property::none;
  std::vector<Event> events;                 // executed, up to and including what violates
  std::optional<std::size_t> first_changed;  // of the wanted events, that was not possible as it is
};

enum class AtEnd {
  stop,
  run_on,  // always with the first event, until no rank moves; a hang is A5
};

// Executes the wanted events in their order. Any list of events will do: one that is not possible
// is made so by what its rank has to do first (a launch that is due, the choice of an interface,
// completions), or replaced by the other kind of epilogue, or else left out.
ScheduleRun run_leniently(const RankRules& rules, std::span<const Event> wanted, AtEnd at_end);

// The failing schedule without what the violation does not depend on, ranks renamed and events
// reordered to the least equivalent form (see shrink.h). Itself when that would not fail. Adds the
// executions that it took to `executions`.
std::vector<Event> canonical(const RankRules& rules, Property property,
                             const std::vector<Event>& failing, std::uint64_t& executions);

// The shortest beginning of the failing schedule after which one event violates the property, and
// that event. Empty for A5.
std::vector<Event> cut_short(const RankRules& rules, Property property,
                             const std::vector<Event>& failing);

// Shorter, or as long and earlier in the dictionary.
bool is_simpler(const std::vector<Event>& left, const std::vector<Event>& right);

}  // namespace zeroproof::zero_epilogue

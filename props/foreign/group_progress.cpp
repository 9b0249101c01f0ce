#include "props/foreign/group_progress.h"

#include <algorithm>

namespace zeroproof {
namespace {

bool is_finished(const DumpedCollective& one) {
  return one.state == OpState::completed || one.is_retired || one.state == OpState::unknown;
}

bool has_finished(const RankDump& dump) {
  return std::any_of(dump.collectives.begin(), dump.collectives.end(), is_finished);
}

}  // namespace

// Numbers that begin above 1 in dumps without anything finished: what was finished is left out.
GroupState::GroupState(const CollectiveGroup& group) : group_(group) {
  bool begins_late = false;
  bool is_anything_finished = false;
  for (const GroupView& view : group.views) {
    is_anything_finished = is_anything_finished || has_finished(*view.dump);
    begins_late = begins_late || (!view.issued.empty() && view.first() > 1);
  }
  holds_active_only_ = begins_late && !is_anything_finished;
}

const GroupProgress* GroupState::progress(std::size_t view) const {
  const auto& all = group_.views[view].dump->progress;
  const auto found = all.find(group_.name);
  return found == all.end() ? nullptr : &found->second;
}

Fate GroupState::fate(std::size_t view, std::int64_t number) const {
  const GroupView& one = group_.views[view];
  if (one.at(number) != nullptr) return Fate::issued;
  if (const GroupProgress* counted = progress(view))
    return counted->enqueued >= number ? Fate::issued : Fate::not_issued;
  const bool has_dropped = one.dump->is_truncated || one.dump->first_record > 1;
  if (one.issued.empty())
    return holds_active_only_ || has_dropped ? Fate::unknown : Fate::not_issued;
  if (number < one.last()) return Fate::issued;
  return one.dump->is_window() ? Fate::unknown : Fate::not_issued;
}

std::optional<std::int64_t> GroupState::completed(std::size_t view) const {
  if (const GroupProgress* counted = progress(view))
    return std::max<std::int64_t>(counted->completed, 0);
  const GroupView& one = group_.views[view];
  if (one.issued.empty()) return std::nullopt;
  const DumpedCollective* const waiting = one.first_waiting();
  const bool has_states = std::any_of(one.issued.begin(), one.issued.end(), [](const auto* op) {
    return op->state == OpState::completed;
  });
  if (waiting != nullptr) return waiting->number + one.shift - 1;
  return has_states ? std::optional(one.last()) : std::nullopt;
}

std::vector<std::size_t> GroupState::trailing() const {
  std::int64_t most = -1;
  for (std::size_t at = 0; at < group_.views.size(); ++at)
    most = std::max(most, completed(at).value_or(-1));
  std::vector<std::size_t> behind;
  for (std::size_t at = 0; at < group_.views.size(); ++at) {
    const auto done = completed(at);
    if (done && *done < most && fate(at, *done + 1) == Fate::issued) behind.push_back(at);
  }
  return behind;
}

}  // namespace zeroproof

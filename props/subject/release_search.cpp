#include "props/subject/release_search.h"

#include <algorithm>
#include <bit>

namespace zeroproof::subject {

bool ReleaseSearch::run(std::optional<std::size_t> found_in) {
  if (tried_.empty()) return true;
  const auto last = tried_.size() - 1;
  if (found_in && !attempt(*found_in)) return false;
  return attempt_end(0, 1) && attempt_end(last, -1) && look_for_one() && narrow();
}

bool ReleaseSearch::attempt(std::size_t at) {
  if (tried_[at]) return true;
  tried_[at] = try_release_(at);
  return tried_[at].has_value();
}

// The first from one end that can run.
bool ReleaseSearch::attempt_end(std::size_t from, std::ptrdiff_t step) {
  for (std::size_t at = from; at < tried_.size(); at += static_cast<std::size_t>(step)) {
    if (!attempt(at)) return false;
    if (tried_[at] != Presence::cannot_run) break;
  }
  return true;
}

// Halves, quarters, and so on, until one has the finding.
bool ReleaseSearch::look_for_one() {
  const auto has_one = [&] {
    return std::find(tried_.begin(), tried_.end(), Presence::present) != tried_.end();
  };
  for (std::size_t step = std::bit_ceil(tried_.size()); step > 0; step /= 2)
    for (std::size_t at = step; at < tried_.size() && !has_one(); at += step)
      if (!attempt(at)) return false;
  return true;
}

bool ReleaseSearch::narrow() {
  while (true) {
    const std::vector<PresenceChange> open = changes();
    const auto next = std::find_if(open.begin(), open.end(), [&](const PresenceChange& change) {
      return middle_of(change.before, change.after).has_value();
    });
    if (next == open.end()) return true;
    if (!attempt(*middle_of(next->before, next->after))) return false;
  }
}

// The places of those that ran.
std::vector<std::size_t> ReleaseSearch::known() const {
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < tried_.size(); ++at)
    if (tried_[at] && tried_[at] != Presence::cannot_run) places.push_back(at);
  return places;
}

// The untried one nearest to the middle; none where all between were tried.
std::optional<std::size_t> ReleaseSearch::middle_of(std::size_t before, std::size_t after) const {
  std::optional<std::size_t> best;
  const auto distance = [&](std::size_t at) {
    const std::size_t twice = 2 * at;
    const std::size_t middle = before + after;
    return twice > middle ? twice - middle : middle - twice;
  };
  for (std::size_t at = before + 1; at < after; ++at)
    if (!tried_[at] && (!best || distance(at) < distance(*best))) best = at;
  return best;
}

std::vector<PresenceChange> ReleaseSearch::changes() const {
  std::vector<PresenceChange> changes;
  const std::vector<std::size_t> places = known();
  for (std::size_t next = 1; next < places.size(); ++next) {
    const std::size_t before = places[next - 1];
    const std::size_t after = places[next];
    if (tried_[before] != tried_[after]) changes.push_back({before, after, *tried_[after]});
  }
  return changes;
}

}  // namespace zeroproof::subject

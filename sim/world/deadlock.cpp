#include "sim/world/deadlock.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/world/rank_task.h"

namespace zeroproof::sim {
namespace {

struct Obstacle {
  std::string text;
  std::vector<int> missing;  // ranks of the world that are waited for
};

// The collective at the head of a stream, and who is not there.
Obstacle obstacle_of(const StreamWork& work, RankTask& task) {
  Obstacle obstacle;
  const Rendezvous& meeting = *work.meeting;
  std::vector<int> ranks;
  for (int kind = 0; kind < kGroupKinds; ++kind) {
    auto& group = static_cast<SimGroup&>(task.runtime().group(static_cast<GroupKind>(kind)));
    if (&group.point() == work.point) ranks = group.ranks();
  }
  for (std::size_t r = 0; r < meeting.parts.size(); ++r)
    if (!meeting.parts[r] || !meeting.parts[r]->is_at_head) obstacle.missing.push_back(ranks[r]);
  obstacle.text =
      fmt::format("{}, collective {} ({}), where rank{} {} did not come", work.point->name(),
                  meeting.sequence, meeting.parts[work.member]->description(),
                  obstacle.missing.size() == 1 ? "" : "s", fmt::join(obstacle.missing, ", "));
  return obstacle;
}

Obstacle obstacle_of(RankTask& task) {
  const SimStreams& streams = task.runtime().streams();
  const SimStream* stream = streams.stream_of(*task.awaited());
  // A wait at a head leads on to the stream that is waited for.
  for (std::size_t hops = 0; stream && hops <= streams.all().size(); ++hops) {
    const StreamWork& head = stream->head();
    if (head.kind == StreamWork::Kind::collective) return obstacle_of(head, task);
    if (head.kind != StreamWork::Kind::wait) break;
    stream = streams.stream_of(head.event);
  }
  return {"an event that no stream will reach", {}};
}

// The first ranks found that wait for each other in a ring; empty for none.
std::vector<int> ring(const std::vector<std::vector<int>>& waits_for) {
  for (std::size_t start = 0; start < waits_for.size(); ++start) {
    std::vector<int> path{static_cast<int>(start)};
    while (true) {
      const auto& next = waits_for[static_cast<std::size_t>(path.back())];
      if (next.empty()) break;
      const auto seen = std::ranges::find(path, next.front());
      if (seen != path.end()) return {seen, path.end()};
      path.push_back(next.front());
    }
  }
  return {};
}

}  // namespace

std::string describe_deadlock(const std::vector<std::unique_ptr<RankTask>>& ranks) {
  std::vector<std::string> lines;
  std::vector<std::vector<int>> waits_for(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    RankTask& task = *ranks[r];
    if (task.is_done()) {
      lines.push_back(fmt::format("rank {} has ended", r));
      continue;
    }
    const Obstacle obstacle = obstacle_of(task);
    waits_for[r] = obstacle.missing;
    lines.push_back(fmt::format("rank {} waits for {}", r, obstacle.text));
  }
  std::string text = fmt::format("deadlock: {}", fmt::join(lines, "; "));
  const std::vector<int> cycle = ring(waits_for);
  if (!cycle.empty())
    text += fmt::format("; cycle: rank {} -> rank {}", fmt::join(cycle, " -> rank "), cycle[0]);
  return text;
}

}  // namespace zeroproof::sim

#include "props/watch/certain.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "props/replay/rank_lockstep.h"
#include "props/replay/uncaught.h"

namespace zeroproof {
namespace {

// What an event has done and no later one undoes. Whatever is found because something did not
// happen is left to the end of the recording.
constexpr std::array<std::string_view, 22> kCertain = {"bucket.parameter_twice",
                                                       "ddp.bucket_order",
                                                       "ddp.bucket_twice",
                                                       "ddp.ready_twice",
                                                       "ddp.step_without_reduction",
                                                       "ddp.step_without_sync",
                                                       "epilogue.count",
                                                       "epilogue.in_forward",
                                                       "epilogue.too_early",
                                                       "fsdp2.step_without_sync",
                                                       "fsdp2.use_after_reshard",
                                                       "gradients.not_reduced",
                                                       "gradients.overwritten",
                                                       "gradients.stale",
                                                       "hook.undefined_gradient",
                                                       "parameter.not_resident",
                                                       "parameter.released_in_use",
                                                       "process.died_in_transform",
                                                       "process.ended_early",
                                                       "process.exception",
                                                       "zero3.retained_graph_released",
                                                       "zero3.transform_unsupported"};

bool is_of_peers(const Diagnosis& found, const TraceReplay& trace) {
  if (!trace.story ||
      std::find(found.ranks.begin(), found.ranks.end(), trace.story->rank) == found.ranks.end())
    return false;
  const auto ended = uncaught_exception(*trace.story);
  return ended && ended->is_of_peers;
}

std::uint64_t longest(const LaneGroup& group) {
  std::uint64_t size = 0;
  for (const LaneSeat& seat : group.seats) size = std::max(size, seat.size());
  return size;
}

std::uint64_t shortest(const LaneGroup& group) {
  std::uint64_t size = longest(group);
  for (const LaneSeat& seat : group.seats) size = std::min(size, seat.size());
  return size;
}

}  // namespace

bool is_certain(const Diagnosis& found, const std::vector<const TraceReplay*>& traces) {
  if (found.gravity != Gravity::defect) return false;
  const bool is_of_ranks = found.kind.starts_with("collective.");
  if (!is_of_ranks && !std::binary_search(kCertain.begin(), kCertain.end(), found.kind))
    return false;
  // "Connection closed by peer": the rank that began may not have been read yet.
  if (found.kind == "process.exception")
    return std::none_of(traces.begin(), traces.end(),
                        [&](const TraceReplay* trace) { return is_of_peers(found, *trace); });
  return true;
}

bool PartingLanes::is_settled(const LaneGroups& lanes) {
  return std::any_of(lanes.groups.begin(), lanes.groups.end(),
                     [&](const LaneGroup& group) { return is_settled(group); });
}

// Ranks at different places look different although they agree, so content is compared where two
// ranks have issued equally many, or where their hashes already part. Who is wrong is the
// majority's word, so more than two ranks must stand at one place.
bool PartingLanes::is_settled(const LaneGroup& group) {
  if (group.agrees()) return false;
  const bool is_level = shortest(group) == longest(group);
  const bool parts = is_level || std::any_of(group.classes.begin(), group.classes.end(),
                                             [](const auto& one) { return one.order_lc > 0; });
  auto seen = std::find_if(seen_.begin(), seen_.end(),
                           [&](const Seen& one) { return one.group == group.name; });
  if (seen == seen_.end()) {
    if (parts) seen_.push_back({group.name, longest(group)});
    return false;
  }
  const bool may_judge = group.seats.size() == 2 || is_level;
  return may_judge && shortest(group) >= seen->size + LockstepDifference::kLookAhead;
}

}  // namespace zeroproof

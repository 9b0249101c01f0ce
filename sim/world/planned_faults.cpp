#include "sim/world/planned_faults.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/world/history.h"

namespace zeroproof::sim {
namespace {

// What a fault of the kind is counted by; a time-out has the place of its collective.
FaultPlace place_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::allocation:
      return FaultPlace::allocation;
    case FaultKind::overflow:
      return FaultPlace::gradient;
    case FaultKind::skipped_step:
      return FaultPlace::step;
    case FaultKind::destroy:
      return FaultPlace::call;
    default:
      return FaultPlace::event;
  }
}

bool strikes_all(FaultKind kind) {
  return kind == FaultKind::exception || kind == FaultKind::allocation ||
         kind == FaultKind::skipped_step || kind == FaultKind::hook_removal ||
         kind == FaultKind::destroy;
}

bool strikes_one(FaultKind kind) {
  return kind == FaultKind::allocation || !strikes_all(kind);
}

}  // namespace

PlannedFaults::PlannedFaults(int world_size, std::vector<Fault> plan)
    : counts_(static_cast<std::size_t>(world_size)),
      plan_(std::move(plan)),
      has_struck_(plan_.size()) {
  for (int rank = 0; rank < world_size; ++rank) points_.emplace_back(*this, rank);
}

void PlannedFaults::set_hook_remover(int rank, std::function<void()> remove) {
  of(rank).remove_hooks = std::move(remove);
}

void PlannedFaults::pause(int rank) {
  Counts& counts = of(rank);
  if (!counts.is_open) return;
  counts.is_open = false;
  counts.windows[counts.window].emplace_back();
}

void PlannedFaults::begin_window(int rank, std::uint64_t window) {
  Counts& counts = of(rank);
  counts.is_open = true;
  counts.window = window;
  if (counts.windows.size() <= window) counts.windows.resize(window + 1);
  counts.windows[window] = {Interval{}};
  while (counts.due < plan_.size() && plan_[counts.due].window < window) ++counts.due;
}

void PlannedFaults::recover_all(std::size_t due) {
  for (Counts& counts : counts_) {
    counts = {};
    counts.due = due;
  }
}

const Fault* PlannedFaults::due(int rank) const {
  const Counts& counts = counts_[static_cast<std::size_t>(rank)];
  const bool is_here = counts.due < plan_.size() && plan_[counts.due].window == counts.window;
  return is_here ? &plan_[counts.due] : nullptr;
}

bool PlannedFaults::is_due(FaultKind kind, int rank, std::uint64_t at) {
  const Fault* const fault = due(rank);
  if (!fault || fault->kind != kind || fault->at != at) return false;
  if (fault->rank >= 0 && fault->rank != rank) return false;
  const Counts& counts = of(rank);
  if (fault->after + 1 != counts.windows[counts.window].size()) return false;
  has_struck_[counts.due] = true;
  return true;
}

std::uint64_t PlannedFaults::count(FaultPlace place, Counts& counts) {
  return counts.windows[counts.window].back().places[static_cast<std::size_t>(place)]++;
}

void PlannedFaults::reach_event(int rank) {
  Counts& counts = of(rank);
  if (!counts.is_open) return;
  const std::uint64_t at = count(FaultPlace::event, counts);
  if (is_due(FaultKind::exception, rank, at)) throw InjectedFault(describe(*due(rank)));
  if (is_due(FaultKind::abort, rank, at)) {
    counts.is_aborted = true;
    throw RankAborted(describe(*due(rank)));
  }
  if (is_due(FaultKind::hook_removal, rank, at) && counts.remove_hooks) counts.remove_hooks();
}

void PlannedFaults::reach(int rank, SeamCall call) {
  Counts& counts = of(rank);
  if (counts.is_aborted) throw RankAborted("a call of a rank that has ended");
  if (!counts.is_open) return;
  if (call == SeamCall::allocation) {
    if (is_due(FaultKind::allocation, rank, count(FaultPlace::allocation, counts)))
      throw RuntimeFault(fmt::format("out of memory ({})", describe(*due(rank))));
    return;
  }
  const bool has_failed = is_due(FaultKind::timeout, rank, 0);
  counts.windows[counts.window].emplace_back();
  if (has_failed)
    throw RuntimeFault(fmt::format("the collective timed out ({})", describe(*due(rank))));
}

bool PlannedFaults::strikes(FaultPlace place, int rank) {
  Counts& counts = of(rank);
  if (!counts.is_open) return false;
  const std::uint64_t at = count(place, counts);
  const FaultKind kind = place == FaultPlace::gradient ? FaultKind::overflow
                         : place == FaultPlace::step   ? FaultKind::skipped_step
                                                       : FaultKind::destroy;
  return is_due(kind, rank, at);
}

std::uint64_t PlannedFaults::fingerprint() const {
  History history;
  for (const Fault& fault : plan_) {
    history.add(static_cast<std::uint64_t>(fault.kind));
    history.add(static_cast<std::uint64_t>(fault.rank) + 1);
    history.add(fault.window);
    history.add(fault.after);
    history.add(fault.at);
  }
  for (const Counts& counts : counts_) history.add(counts.due);
  return history.value().low;
}

void PlannedFaults::add_places(std::vector<Fault>& places, Fault fault,
                               const std::vector<Window>& windows) {
  const auto place = static_cast<std::size_t>(place_of(fault.kind));
  for (fault.window = 0; fault.window < windows.size(); ++fault.window) {
    const Window& intervals = windows[fault.window];
    for (fault.after = 0; fault.after < intervals.size(); ++fault.after) {
      const bool has_collective = fault.after + 1 < intervals.size();
      const std::uint64_t count = fault.kind == FaultKind::timeout
                                      ? static_cast<std::uint64_t>(has_collective)
                                      : intervals[fault.after].places[place];
      for (fault.at = 0; fault.at < count; ++fault.at) places.push_back(fault);
    }
  }
}

// What every rank comes by, at the same places.
std::vector<PlannedFaults::Window> PlannedFaults::common_windows() const {
  std::vector<Window> common = counts_.front().windows;
  for (const Counts& counts : counts_) {
    common.resize(std::min(common.size(), counts.windows.size()));
    for (std::size_t window = 0; window < common.size(); ++window) {
      const Window& own = counts.windows[window];
      common[window].resize(std::min(common[window].size(), own.size()));
      for (std::size_t i = 0; i < common[window].size(); ++i)
        for (std::size_t place = 0; place < kFaultPlaces; ++place)
          common[window][i].places[place] =
              std::min(common[window][i].places[place], own[i].places[place]);
    }
  }
  return common;
}

std::vector<Fault> PlannedFaults::places(std::span<const FaultKind> kinds) const {
  std::vector<Fault> places;
  const std::vector<Window> common = common_windows();
  for (const FaultKind kind : kinds) {
    if (strikes_one(kind))
      for (std::size_t rank = 0; rank < counts_.size(); ++rank)
        add_places(places, {.kind = kind, .rank = static_cast<int>(rank)}, counts_[rank].windows);
    if (strikes_all(kind)) add_places(places, {.kind = kind, .rank = -1}, common);
  }
  return places;
}

}  // namespace zeroproof::sim

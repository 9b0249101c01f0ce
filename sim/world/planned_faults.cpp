#include "sim/world/planned_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/world/history.h"

namespace zeroproof::sim {

std::string_view fault_name(FaultKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"exception", "abort", "timeout",
                                                      "allocation"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string describe(const Fault& fault) {
  const std::string who = fault.rank < 0 ? "all" : fmt::format("r{}", fault.rank);
  return fmt::format("{}.{}.{}+{}", fault_name(fault.kind), who, fault.after, fault.at);
}

PlannedFaults::PlannedFaults(int world_size) : counts_(static_cast<std::size_t>(world_size)) {
  for (int rank = 0; rank < world_size; ++rank) points_.emplace_back(*this, rank);
}

void PlannedFaults::plan(const std::optional<Fault>& fault) {
  counts_.assign(counts_.size(), {});
  fault_ = fault;
  has_struck_ = false;
}

bool PlannedFaults::strikes(FaultKind kind, int rank, std::uint64_t at) {
  const std::uint64_t after = counts_[static_cast<std::size_t>(rank)].intervals.size() - 1;
  if (!fault_ || fault_->kind != kind || fault_->after != after || fault_->at != at) return false;
  if (fault_->rank >= 0 && fault_->rank != rank) return false;
  has_struck_ = true;
  return true;
}

std::uint64_t PlannedFaults::fingerprint() const {
  if (!fault_) return 0;
  History history;
  history.add(static_cast<std::uint64_t>(fault_->kind));
  history.add(static_cast<std::uint64_t>(fault_->rank + 1));
  history.add(fault_->after);
  history.add(fault_->at);
  return history.value().low;
}

void PlannedFaults::reach_event(int rank) {
  Counts& counts = counts_[static_cast<std::size_t>(rank)];
  if (!counts.is_open) return;
  const std::uint64_t at = counts.intervals.back().events++;
  if (strikes(FaultKind::exception, rank, at)) throw InjectedFault(describe(*fault_));
  if (strikes(FaultKind::abort, rank, at)) throw RankAborted(describe(*fault_));
}

void PlannedFaults::reach(int rank, SeamCall call) {
  Counts& counts = counts_[static_cast<std::size_t>(rank)];
  if (!counts.is_open) return;
  if (call == SeamCall::allocation) {
    if (strikes(FaultKind::allocation, rank, counts.intervals.back().allocations++))
      throw RuntimeFault(fmt::format("out of memory ({})", describe(*fault_)));
    return;
  }
  const bool has_failed = strikes(FaultKind::timeout, rank, 0);
  counts.intervals.emplace_back();
  if (has_failed)
    throw RuntimeFault(fmt::format("the collective timed out ({})", describe(*fault_)));
}

void PlannedFaults::add_places(std::vector<Fault>& places, int rank,
                               const std::vector<Interval>& intervals) {
  const FaultKind of_event = rank < 0 ? FaultKind::exception : FaultKind::abort;
  for (std::uint64_t after = 0; after < intervals.size(); ++after) {
    const auto add = [&](FaultKind kind, std::uint64_t count) {
      for (std::uint64_t at = 0; at < count; ++at) places.push_back({kind, rank, after, at});
    };
    add(of_event, intervals[after].events);
    add(FaultKind::allocation, intervals[after].allocations);
    if (rank >= 0 && after + 1 < intervals.size()) add(FaultKind::timeout, 1);
  }
}

std::vector<Fault> PlannedFaults::places() const {
  std::vector<Fault> places;
  std::vector<Interval> common = counts_.front().intervals;
  for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
    const std::vector<Interval>& own = counts_[rank].intervals;
    add_places(places, static_cast<int>(rank), own);
    common.resize(std::min(common.size(), own.size()));
    for (std::size_t i = 0; i < common.size(); ++i) {
      common[i].events = std::min(common[i].events, own[i].events);
      common[i].allocations = std::min(common[i].allocations, own[i].allocations);
    }
  }
  add_places(places, -1, common);
  return places;
}

std::optional<Fault> choose_fault(Chooser& chooser, const std::vector<Fault>& places) {
  if (places.empty()) return std::nullopt;
  std::vector<std::string> names{"none"};
  for (const Fault& place : places) names.push_back(describe(place));
  const std::vector<std::string_view> options(names.begin(), names.end());
  const std::size_t choice = chooser.choose({"fault.event", options, {}});
  if (choice == 0) return std::nullopt;
  return places[choice - 1];
}

}  // namespace zeroproof::sim

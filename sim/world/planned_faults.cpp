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
  if (fault.rank < 0) return fmt::format("{}.all.{}", fault_name(fault.kind), fault.at);
  return fmt::format("{}.r{}.{}", fault_name(fault.kind), fault.rank, fault.at);
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
  if (!fault_ || fault_->kind != kind || fault_->at != at) return false;
  if (fault_->rank >= 0 && fault_->rank != rank) return false;
  has_struck_ = true;
  return true;
}

std::uint64_t PlannedFaults::fingerprint() const {
  if (!fault_) return 0;
  History history;
  history.add(static_cast<std::uint64_t>(fault_->kind));
  history.add(static_cast<std::uint64_t>(fault_->rank + 1));
  history.add(fault_->at);
  return history.value().low;
}

void PlannedFaults::reach_event(int rank) {
  Counts& counts = counts_[static_cast<std::size_t>(rank)];
  if (!counts.is_open) return;
  const std::uint64_t at = counts.events++;
  if (strikes(FaultKind::exception, rank, at)) throw InjectedFault(describe(*fault_));
  if (strikes(FaultKind::abort, rank, at)) throw RankAborted(describe(*fault_));
}

void PlannedFaults::reach(int rank, SeamCall call) {
  Counts& counts = counts_[static_cast<std::size_t>(rank)];
  if (!counts.is_open) return;
  const bool is_collective = call == SeamCall::collective;
  const FaultKind kind = is_collective ? FaultKind::timeout : FaultKind::allocation;
  const std::uint64_t at = is_collective ? counts.collectives++ : counts.allocations++;
  if (!strikes(kind, rank, at)) return;
  throw RuntimeFault(fmt::format(
      "{} ({})", is_collective ? "the collective timed out" : "out of memory", describe(*fault_)));
}

void PlannedFaults::add_places(std::vector<Fault>& places, int rank, const Counts& counts) const {
  const auto add = [&](FaultKind kind, std::uint64_t count) {
    for (std::uint64_t at = 0; at < count; ++at) places.push_back({kind, rank, at});
  };
  add(FaultKind::allocation, counts.allocations);
  if (rank < 0) {
    add(FaultKind::exception, counts.events);
  } else {
    add(FaultKind::abort, counts.events);
    add(FaultKind::timeout, counts.collectives);
  }
}

std::vector<Fault> PlannedFaults::places() const {
  std::vector<Fault> places;
  Counts common = counts_.front();
  for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
    add_places(places, static_cast<int>(rank), counts_[rank]);
    common.events = std::min(common.events, counts_[rank].events);
    common.allocations = std::min(common.allocations, counts_[rank].allocations);
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

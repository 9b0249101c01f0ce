#include "props/train/fault_choices.h"

#include "sim/world/history.h"

namespace zeroproof::train {

FaultChoices::FaultChoices(const std::vector<sim::Fault>& places) {
  for (const sim::Fault& place : places) {
    if (kinds_.empty() || kinds_.back().places.front().kind != place.kind) kinds_.emplace_back();
    kinds_.back().places.push_back(place);
    kinds_.back().names.push_back(describe(place));
  }
}

std::vector<sim::FaultKind> FaultChoices::kinds() const {
  std::vector<sim::FaultKind> kinds;
  for (const Kind& kind : kinds_) kinds.push_back(kind.places.front().kind);
  return kinds;
}

std::vector<sim::Fault> FaultChoices::choose(Chooser& chooser, std::int64_t most) const {
  std::vector<sim::Fault> plan;
  if (kinds_.empty()) return plan;
  std::vector<std::string_view> names{"none"};
  for (const Kind& kind : kinds_) names.push_back(sim::fault_name(kind.places.front().kind));
  sim::History history;  // of the plan: what decides the rest
  const auto pick = [&](std::string_view site, std::span<const std::string_view> options) {
    const std::size_t taken = chooser.choose({site, options, history.value()});
    history.add(taken + 1);
    return taken;
  };
  for (std::int64_t number = 0; number < most; ++number) {
    const std::size_t kind = pick("fault.kind", names);
    if (kind == 0) break;
    const Kind& chosen = kinds_[kind - 1];
    const std::vector<std::string_view> places(chosen.names.begin(), chosen.names.end());
    plan.push_back(chosen.places[pick("fault.event", places)]);
  }
  return plan;
}

}  // namespace zeroproof::train

#include "props/mutation/event_judges.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "zeroproof/internal/engine/runtime/host/group_layout.h"

namespace zeroproof::mutation {
namespace {

// As communicators name them; none where each would be a rank alone.
std::set<std::string, std::less<>> tensor_groups_of(const train::CaseSpec& spec) {
  std::set<std::string, std::less<>> names;
  if (spec.tensor == 1) return names;
  for (const std::vector<int>& ranks :
       group_layout(GroupKind::tensor, spec.world_size(), {.tensor = spec.tensor}))
    names.insert(fmt::format("g{}", fmt::join(ranks, "_")));
  return names;
}

}  // namespace

EventJudges::EventJudges(const train::CaseSpec& spec, const NameTable& names)
    : names_(names),
      tensor_groups_(tensor_groups_of(spec)),
      cost_(spec, names),
      collectives_(spec, names),
      fetch_(spec, names),
      record_(names),
      residency_(spec, names),
      gather_(spec, names),
      stage3_(spec, names),
      kept_(spec, names),
      retained_(spec, names) {}

void EventJudges::on_event(const HookEvent& event) {
  if (tensor_groups_.contains(names_.text(event.group))) return;
  cost_.on_event(event);
  collectives_.on_event(event);
  fetch_.on_event(event);
  record_.on_event(event);
  residency_.on_event(event);
  gather_.on_event(event);
  stage3_.on_event(event);
  kept_.on_event(event);
  retained_.on_event(event);
}

void EventJudges::for_each_finding(
    const std::function<void(std::string_view number, const std::string& text)>& see) const {
  const std::pair<std::string_view, std::string> all[] = {{"R10", cost_.collective_finding()},
                                                          {"R10", collectives_.finding()},
                                                          {"R10", fetch_.finding()},
                                                          {"R21", record_.finding()},
                                                          {"R11", cost_.count_finding()},
                                                          {"P63", cost_.resident_finding()},
                                                          {"R12", residency_.kept_finding()},
                                                          {"P64", residency_.given_finding()},
                                                          {"R10", gather_.collective_finding()},
                                                          {"R10", stage3_.cost_finding()},
                                                          {"R12", fetch_.kept_finding()},
                                                          {"R12", gather_.kept_finding()},
                                                          {"P64", gather_.given_finding()},
                                                          {"P69", kept_.finding()},
                                                          {"R10", retained_.finding()},
                                                          {"R13", stage3_.count_finding()}};
  for (const auto& [number, text] : all)
    if (!text.empty()) see(number, text);
}

}  // namespace zeroproof::mutation

#include "props/mutation/reference_judge.h"

#include <fmt/format.h>

#include "props/mutation/case_unseen.h"
#include "props/train/reference_worlds.h"

namespace zeroproof::mutation {
namespace {

std::vector<reference::World> worlds_of(const train::CaseSpec& spec,
                                        const train::TrainScenario& scenario,
                                        const train::TrainCell& cell) {
  std::vector<reference::World> worlds = train::reference_worlds(scenario, cell, unseen_of(spec));
  for (reference::World& world : worlds) mark_external_uses(spec, world);
  return worlds;
}

}  // namespace

ReferenceJudge::ReferenceJudge(const train::CaseSpec& spec, const train::TrainScenario& scenario,
                               const train::TrainCell& cell, const NameTable& names)
    : walker_(names, worlds_of(spec, scenario, cell)) {}

void ReferenceJudge::for_each_finding(
    bool is_complete,
    const std::function<void(std::string_view number, const std::string& text)>& see) {
  walker_.finish(is_complete);
  for (const reference::Finding& finding : walker_.findings()) {
    const reference::RuleInfo& rule = reference::info(finding.rule);
    see(rule.property, fmt::format("{}, at lc {}: {}", rule.id, finding.lc, finding.text));
  }
}

}  // namespace zeroproof::mutation

#include "props/mutation/cli/mutation_findings.h"

#include <fmt/format.h>

#include <string>

#include "props/cli/verb.h"
#include "props/report/replay_findings.h"

namespace zeroproof {
namespace {

using hunt::ProgramFound;

std::string subject_of(const hunt::Mutant& fault) {
  return fmt::format("{}/{} {}", kMutation, fault.id, fault.sentence);
}

LocatedFinding falsified(const ProgramFound& found) {
  LocatedFinding located = located_finding({.property = found.property, .text = found.finding});
  located.level = FindingLevel::warning;
  located.subject = subject_of(*found.fault);
  located.reproduce = fmt::format("{} {} --replay {}", kMutation, found.fault->id, token_of(found));
  return located;
}

LocatedFinding missed(const ProgramFound& found) {
  return {.rule = "mutation.found",
          .statement = "the hunt finds every fault",
          .text = fmt::format("{} is missed: {}", found.fault->id, found.fault->sentence),
          .subject = subject_of(*found.fault),
          .reproduce = fmt::format("{} {}", kMutation, found.fault->id)};
}

JUnitCase case_of(std::string name, bool is_good, std::string text) {
  return {std::string(kMutation), std::move(name),
          is_good ? JUnitOutcome::passed : JUnitOutcome::failed, std::move(text)};
}

}  // namespace

LocatedFindings located_findings(const HuntFindings& findings) {
  LocatedFindings all;
  for (const ProgramFound& one : findings.found)
    all.push_back(one.is_found ? falsified(one) : missed(one));
  if (!findings.is_canary_found)
    all.push_back({.rule = "mutation.found",
                   .statement = "the hunt finds every fault",
                   .text = "the canary is missed: the hunt is blind"});
  for (const ProgramFound& one : findings.unmutated)
    all.push_back({.rule = "mutation.unmutated",
                   .statement = "no property is falsified on the unmutated engine",
                   .text = one.finding,
                   .subject = "the unmutated engine",
                   .reproduce = fmt::format("{} --replay {}", kMutation, token_of(one))});
  return all;
}

std::vector<JUnitCase> hunt_cases(const HuntFindings& findings) {
  std::vector<JUnitCase> cases;
  for (const ProgramFound& one : findings.found)
    cases.push_back(case_of(one.fault->id, one.is_found, one.fault->sentence));
  cases.push_back(case_of("canary", findings.is_canary_found, "the canary was not found"));
  std::string text;
  for (const ProgramFound& one : findings.unmutated) text += one.finding + "\n";
  cases.push_back(case_of("unmutated", findings.unmutated.empty(), text));
  return cases;
}

}  // namespace zeroproof

#include "props/mutation/hunt_findings.h"

#include <fmt/format.h>

namespace zeroproof {
namespace {

using mutation::Fault;
using mutation::Found;

std::string subject_of(const Fault& fault) {
  return fmt::format("mutation/{} {}", fault.id, fault.sentence);
}

LocatedFinding falsified(const Property& property, const std::string& text) {
  return {.rule = std::string(property.id),
          .number = std::string(property.number),
          .statement = std::string(property.statement),
          .source = std::string(property.source),
          .level = FindingLevel::warning,
          .text = text};
}

std::string replay_words(std::string_view id, const mutation::Counterexample& counterexample) {
  return fmt::format("mutation {} --replay {}", id, mutation::token_of(counterexample, id));
}

void add(const Found& one, LocatedFindings& findings) {
  if (!one.fault->is_modelled()) return;
  if (one.is_found) {
    LocatedFinding& added = findings.emplace_back(falsified(*one.property, one.text));
    added.subject = subject_of(*one.fault);
    added.reproduce = replay_words(one.fault->id, one.counterexample);
    return;
  }
  findings.push_back({.rule = "mutation.found",
                      .statement = "the hunt finds every fault",
                      .text = fmt::format("{} is missed: {}", one.fault->id, one.fault->sentence),
                      .subject = subject_of(*one.fault),
                      .reproduce = fmt::format("mutation {}", one.fault->id)});
}

}  // namespace

LocatedFindings located_findings(const mutation::HuntReport& report) {
  LocatedFindings findings;
  for (const Found& one : report.found) add(one, findings);
  if (!report.canary.is_found) add(report.canary, findings);
  for (const std::string& text : report.unmutated.findings)
    findings.push_back({.rule = "mutation.unmutated",
                        .statement = "no property is falsified on the unmutated engine",
                        .text = text,
                        .subject = "the unmutated engine"});
  return findings;
}

LocatedFindings located_findings(const mutation::ReadToken& token,
                                 const mutation::CaseResult& mutated) {
  const Fault* const fault = mutation::find_fault(token.id);
  LocatedFindings findings;
  for (const mutation::Falsified& one : mutated.falsified) {
    LocatedFinding& added = findings.emplace_back(falsified(*one.property, one.text));
    added.rank = one.rank;
    added.subject = fault ? subject_of(*fault) : token.id;
    added.reproduce = replay_words(token.id, token.counterexample);
  }
  return findings;
}

}  // namespace zeroproof

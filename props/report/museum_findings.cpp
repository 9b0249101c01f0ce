#include "props/report/museum_findings.h"

#include <fmt/format.h>

namespace zeroproof {
namespace {

using museum::Entry;
using museum::Found;

std::string subject_of(const Entry& entry) {
  return fmt::format("museum/{} {}", entry.id, entry.fault);
}

LocatedFinding falsified(const Property& property, const std::string& text) {
  return {.rule = std::string(property.id),
          .number = std::string(property.number),
          .statement = std::string(property.statement),
          .source = std::string(property.source),
          .level = FindingLevel::warning,
          .text = text};
}

std::string replay_words(std::string_view id, const museum::Specimen& specimen) {
  return fmt::format("museum {} --replay {}", id, museum::token_of(specimen, id));
}

void add(const Found& one, LocatedFindings& findings) {
  if (!one.entry->is_modelled()) return;
  if (one.is_found) {
    LocatedFinding& added = findings.emplace_back(falsified(*one.property, one.text));
    added.subject = subject_of(*one.entry);
    added.reproduce = replay_words(one.entry->id, one.specimen);
    return;
  }
  findings.push_back({.rule = "museum.found",
                      .statement = "the hunt finds every planted bug",
                      .text = fmt::format("{} is missed: {}", one.entry->id, one.entry->fault),
                      .subject = subject_of(*one.entry),
                      .reproduce = fmt::format("museum {}", one.entry->id)});
}

}  // namespace

LocatedFindings located_findings(const museum::MuseumReport& report) {
  LocatedFindings findings;
  for (const Found& one : report.found) add(one, findings);
  if (!report.canary.is_found) add(report.canary, findings);
  for (const std::string& text : report.healthy.findings)
    findings.push_back({.rule = "museum.healthy",
                        .statement = "no property is falsified on the healthy engine",
                        .text = text,
                        .subject = "the healthy engine"});
  return findings;
}

LocatedFindings located_findings(const museum::ReadToken& token,
                                 const museum::TrialResult& planted) {
  const Entry* const entry = museum::find_entry(token.id);
  LocatedFindings findings;
  for (const museum::Falsified& one : planted.falsified) {
    LocatedFinding& added = findings.emplace_back(falsified(*one.property, one.text));
    added.rank = one.rank;
    added.subject = entry ? subject_of(*entry) : token.id;
    added.reproduce = replay_words(token.id, token.specimen);
  }
  return findings;
}

}  // namespace zeroproof

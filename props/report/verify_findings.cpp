#include <utility>

#include "props/report/replay_findings.h"
#include "props/report/verify_pages.h"
#include "props/report/verify_report.h"

namespace zeroproof {

LocatedFindings located_findings(const VerifyReport& report) {
  LocatedFindings findings;
  const auto add = [&](std::string rule, std::string statement,
                       const std::string& text) -> LocatedFinding& {
    return findings.emplace_back(LocatedFinding{.rule = std::move(rule),
                                                .statement = std::move(statement),
                                                .text = text,
                                                .reproduce = "verify"});
  };
  for (const std::string& line : report.unexpected) {
    add("verify.replay", "bundled traces show their known findings and no other", line).file =
        report.options.traces_folder + "/expected.json";
  }
  for (const ConformReport* conform : {&report.conform, &report.deepspeed}) {
    for (const ConformOutcome& one : conform->outcomes) {
      if (one.status == ConformStatus::agreed || one.status == ConformStatus::explained) continue;
      LocatedFinding& added =
          add("verify.conform", "our run agrees with the recorded one", one.detail);
      added.file = one.path;
      added.subject = one.program;
      added.reproduce = "conform " + one.path;
    }
  }
  for (const train::TrainReport& one : report.training.cells) {
    if (!one.is_bad()) continue;
    const bool has_error = !one.error.empty();
    LocatedFinding& added =
        add("verify.train", "the engine equals the unsharded baseline and breaks no property",
            has_error ? one.error : one.properties->falsified.front().text);
    added.subject = "train " + train::flags_of(one.cell);
    added.reproduce = added.subject + " --check-properties";
  }
  for (LocatedFinding& one : located_findings(report.exact)) findings.push_back(std::move(one));
  for (const std::string& policy : report.not_caught) {
    add("verify.upstream", "exploring an upstream policy rediscovers its hazards",
        "no property was falsified under " + policy);
  }
  return findings;
}

}  // namespace zeroproof

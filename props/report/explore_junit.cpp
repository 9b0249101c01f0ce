#include "props/report/explore_junit.h"

#include <fmt/format.h>

#include "props/exploration_status.h"

namespace zeroproof {
namespace {

void add_cases(const ExplorationReport& report, std::vector<JUnitCase>& cases) {
  const ExplorationOptions& options = report.options;
  const std::string suite = fmt::format("{} {} {} {} N={}", options.scenario, options.policy,
                                        policy_mode_name(options.mode),
                                        order_model_name(options.order_model), options.params);
  JUnitCase search{.suite = suite, .name = "search"};
  const ExplorationStatus status = status_of(report);
  if (status != ExplorationStatus::held && status != ExplorationStatus::falsified) {
    search.outcome = JUnitOutcome::error;
    search.text = std::string(exploration_status_name(status)) + " " + report.divergence;
  }
  cases.push_back(search);
  for (const Verdict& verdict : report.verdicts) cases.push_back(property_case(suite, verdict));
}

}  // namespace

JUnitCase property_case(const std::string& suite, const Verdict& verdict) {
  JUnitCase one{.suite = suite, .name = std::string(verdict.property->id)};
  if (verdict.status == Status::falsified) {
    one.outcome = JUnitOutcome::failed;
    for (const Finding& finding : verdict.findings) one.text += finding.text + "\n";
  } else if (verdict.status == Status::not_applicable) {
    one.outcome = JUnitOutcome::skipped;
    one.text = verdict.reason;
  }
  return one;
}

std::vector<JUnitCase> explore_cases(const std::vector<ExplorationReport>& reports) {
  std::vector<JUnitCase> cases;
  for (const ExplorationReport& report : reports) add_cases(report, cases);
  return cases;
}

}  // namespace zeroproof

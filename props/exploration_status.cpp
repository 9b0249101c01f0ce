#include "props/exploration_status.h"

namespace zeroproof {
namespace {

// Others sample: their budget is the plan, not a limit.
bool is_exhaustive(const ExplorationReport& report) {
  return report.options.scheduler == "exhaustive";
}

}  // namespace

ExplorationStatus status_of(const ExplorationReport& report) {
  if (report.end == ExploreEnd::diverged) return ExplorationStatus::nondeterminism;
  if (!report.policy_exception.empty())
    return report.findings.empty() ? ExplorationStatus::inconclusive : ExplorationStatus::falsified;
  const bool is_counted = report.orders_explored && report.linear_extensions;
  if (is_counted && *report.orders_explored != *report.linear_extensions) {
    return ExplorationStatus::miscounted;
  }
  if (!report.findings.empty()) return ExplorationStatus::falsified;
  if (report.end == ExploreEnd::interrupted) return ExplorationStatus::interrupted;
  const bool has_ended_early = is_exhaustive(report) && report.end != ExploreEnd::exhausted;
  return has_ended_early ? ExplorationStatus::inconclusive : ExplorationStatus::held;
}

std::string_view exploration_status_name(ExplorationStatus status) {
  switch (status) {
    case ExplorationStatus::held:
      return "held";
    case ExplorationStatus::inconclusive:
      return "inconclusive";
    case ExplorationStatus::falsified:
      return "falsified";
    case ExplorationStatus::interrupted:
      return "interrupted";
    case ExplorationStatus::miscounted:
      return "miscounted";
    case ExplorationStatus::nondeterminism:
      return "nondeterminism";
  }
  return "unknown";
}

std::string falsified_numbers(const ExplorationReport& report) {
  std::string numbers;
  for (const ExplorationFinding& finding : report.findings) {
    if (!numbers.empty()) numbers += ' ';
    numbers += finding.property->number;
  }
  return numbers;
}

std::vector<std::string> falsified_numbers(const std::vector<Verdict>& verdicts) {
  std::vector<std::string> numbers;
  for (const Verdict& verdict : verdicts) {
    if (verdict.status == Status::falsified) numbers.emplace_back(verdict.property->number);
  }
  return numbers;
}

}  // namespace zeroproof

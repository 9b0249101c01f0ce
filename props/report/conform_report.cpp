#include "props/report/conform_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "props/report/json_values.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string status_text(const ConformOutcome& outcome, const Palette& palette) {
  const std::string word = fmt::format("{:<19}", conform_status_name(outcome.status));
  if (outcome.status == ConformStatus::agreed) return palette.good(word);
  const bool is_notice = outcome.status == ConformStatus::unknown ||
                         outcome.status == ConformStatus::explained ||
                         outcome.status == ConformStatus::incomplete;
  return is_notice ? palette.notice(word) : palette.bad(word);
}

std::string summary_text(const ConformReport& report) {
  return fmt::format(
      "{} runs: {} agreed, {} explained, {} order_mismatch, {} collective_mismatch, "
      "{} value_mismatch, {} unknown, {} incomplete\n",
      report.outcomes.size(), report.count(ConformStatus::agreed),
      report.count(ConformStatus::explained), report.count(ConformStatus::order_mismatch),
      report.count(ConformStatus::collective_mismatch), report.count(ConformStatus::value_mismatch),
      report.count(ConformStatus::unknown), report.count(ConformStatus::incomplete));
}

OrderedJson summary_json(const ConformReport& report) {
  return {{"programs", report.outcomes.size()},
          {"runs", report.outcomes.size()},
          {"agreed", report.count(ConformStatus::agreed)},
          {"explained", report.count(ConformStatus::explained)},
          {"order_mismatch", report.count(ConformStatus::order_mismatch)},
          {"collective_mismatch", report.count(ConformStatus::collective_mismatch)},
          {"value_mismatch", report.count(ConformStatus::value_mismatch)},
          {"unknown", report.count(ConformStatus::unknown)},
          {"incomplete", report.count(ConformStatus::incomplete)}};
}

}  // namespace

std::string conform_text(const ConformReport& report, const Palette& palette) {
  std::string text;
  for (const ConformOutcome& outcome : report.outcomes) {
    text += fmt::format("{} {}", status_text(outcome, palette), outcome.program);
    if (outcome.status == ConformStatus::agreed) {
      text += fmt::format("  {} tokens, {} tensors, off by {:.1e}", outcome.tokens, outcome.tensors,
                          outcome.worst);
      if (outcome.is_race)
        text += fmt::format("; a race: order {} of those the rules allow", outcome.orders_tried);
    } else {
      text += "  " + outcome.detail;
    }
    text += '\n';
  }
  text += summary_text(report);
  if (report.count(ConformStatus::unknown) > 0)
    text += fmt::format("inconclusive: {} of {} runs are of programs without a port\n",
                        report.count(ConformStatus::unknown), report.outcomes.size());
  if (report.count(ConformStatus::incomplete) > 0)
    text += fmt::format("inconclusive: {} of {} runs lack a trace of one of their ranks\n",
                        report.count(ConformStatus::incomplete), report.outcomes.size());
  return text;
}

std::string conform_json(const ConformReport& report) {
  OrderedJson document = {{"schema", "zeroproof.conform/1"}, {"summary", summary_json(report)}};
  document["programs"] = OrderedJson::array();
  for (const ConformOutcome& outcome : report.outcomes) {
    document["programs"].push_back({{"program", outcome.program},
                                    {"trace", outcome.path},
                                    {"status", conform_status_name(outcome.status)},
                                    {"detail", outcome.detail},
                                    {"tokens", outcome.tokens},
                                    {"tensors", outcome.tensors},
                                    {"race", outcome.is_race},
                                    {"orders_tried", outcome.orders_tried},
                                    {"worst", outcome.worst}});
  }
  return document_text(document);
}

std::vector<JUnitCase> conform_cases(const ConformReport& report) {
  std::vector<JUnitCase> cases;
  for (const ConformOutcome& outcome : report.outcomes) {
    JUnitOutcome verdict = JUnitOutcome::failed;
    if (outcome.status == ConformStatus::agreed || outcome.status == ConformStatus::explained)
      verdict = JUnitOutcome::passed;
    if (outcome.status == ConformStatus::unknown || outcome.status == ConformStatus::incomplete)
      verdict = JUnitOutcome::skipped;
    cases.push_back({outcome.path, outcome.program, verdict, outcome.detail});
  }
  return cases;
}

}  // namespace zeroproof

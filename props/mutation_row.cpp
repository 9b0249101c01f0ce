#include "props/mutation_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace zeroproof {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSuite = "mutation";

MutationRow row_of(const Json& document) {
  const Json& summary = document.at("summary");
  MutationRow row{
      .is_canary_found = summary.at("canary_found").get<bool>(),
      .unmutated_executions = summary.at("unmutated_executions").get<std::uint64_t>(),
      .unmutated_findings = document.at("unmutated_findings").get<std::vector<std::string>>()};
  for (const Json& one : document.at("faults")) {
    if (!one.at("modelled").get<bool>()) continue;
    ++row.faults;
    if (one.at("found").get<bool>()) {
      ++row.found;
    } else {
      row.missed.push_back(
          {one.at("id").get<std::string>(), one.at("sentence").get<std::string>()});
    }
  }
  return row;
}

JUnitCase case_of(std::string name, bool is_good, std::string text) {
  return {std::string(kSuite), std::move(name),
          is_good ? JUnitOutcome::passed : JUnitOutcome::failed, std::move(text)};
}

}  // namespace

Result<MutationRow> parse_mutation_row(std::string_view json) {
  try {
    return row_of(Json::parse(json));
  } catch (const Json::exception& error) {
    return fail(ErrorCode::cannot_run,
                fmt::format("zeroproof-mutation wrote no zeroproof.mutation/2: {}", error.what()));
  }
}

std::vector<JUnitCase> mutation_cases(const MutationRow& row) {
  std::vector<JUnitCase> cases = {
      case_of("found", true, fmt::format("{} of {}", row.found, row.faults))};
  for (const MutationRow::Missed& one : row.missed)
    cases.push_back(case_of(one.id, false, one.sentence));
  cases.push_back(case_of("canary", row.is_canary_found, "the canary was not found"));
  cases.push_back(case_of("unmutated", row.unmutated_findings.empty(),
                          fmt::format("{}", fmt::join(row.unmutated_findings, "\n"))));
  return cases;
}

}  // namespace zeroproof

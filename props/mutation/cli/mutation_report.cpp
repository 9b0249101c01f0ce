#include "props/mutation/cli/mutation_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "props/mutation/coverage_report.h"
#include "props/report/table.h"

namespace zeroproof {
namespace {

using hunt::ProgramFound;
using OrderedJson = nlohmann::ordered_json;

OrderedJson row_of(const ProgramFound& found) {
  return {{"id", found.fault ? std::string(found.fault->id) : "unmutated"},
          {"sentence", found.fault ? found.fault->sentence : ""},
          {"modelled", true},
          {"found", found.is_found},
          {"property", found.property ? std::string(found.property->number) : ""},
          {"text", found.finding},
          {"case", found.case_number},
          {"executions", found.executions},
          {"seconds", found.seconds},
          {"choices", found.counterexample.values.size()},
          {"choices_before", found.choices_before},
          {"shrink_runs", found.shrink_runs},
          {"token", found.is_found ? token_of(found) : ""}};
}

// What verify's last row is made of (props/mutation_row.h).
OrderedJson summary_of(const MutationReport& report) {
  return {{"hunted", report.found.size()},
          {"found", report.count()},
          {"canary_found", report.is_canary_found.value_or(true)},
          {"unmutated_clean", report.findings.empty()},
          {"unmutated_executions", report.unmutated.executions}};
}

}  // namespace

std::size_t MutationReport::count() const {
  std::size_t count = 0;
  for (const ProgramFound& one : found) count += one.is_found ? 1U : 0U;
  return count;
}

std::string finding_text(const ProgramFound& found) {
  const auto again = hunt::replay(found.counterexample, found.fault);
  const std::string number = found.property ? std::string(found.property->number) : "";
  return fmt::format("{} {}: {}\n{}replay: {}\n", found.fault ? found.fault->id : "unmutated",
                     number, found.finding, again ? again->text : std::string(), token_of(found));
}

std::string report_text(const MutationReport& report, bool has_programs) {
  std::vector<std::vector<std::string>> rows;
  std::string programs;
  for (const ProgramFound& one : report.found) {
    rows.push_back(
        {std::string(one.fault->id), one.is_found ? "found" : "not found",
         one.property ? std::string(one.property->number) : "",
         fmt::format("{} executions", one.executions), fmt::format("{:.1f} s", one.seconds),
         one.is_found ? fmt::format("{} of {} choices, {} runs", one.counterexample.values.size(),
                                    one.choices_before, one.shrink_runs)
                      : ""});
    if (one.is_found && has_programs) programs += "\n" + finding_text(one);
  }
  std::string text = table_text(rows);
  text += fmt::format("{} of {} faults found\n", report.count(), report.found.size());
  if (report.is_canary_found == false) text += "the canary was not found: the hunt is blind\n";
  if (report.unmutated.cases != 0)
    text += fmt::format("unmutated engine: {} findings in {} cases, {} executions, {:.1f} s\n",
                        report.findings.size(), report.unmutated.cases, report.unmutated.executions,
                        report.unmutated.seconds);
  if (report.unmutated.cases != 0) text += mutation::coverage_text(report.unmutated.coverage);
  for (const ProgramFound& one : report.findings)
    text += fmt::format("\ncase {}: ", one.case_number) + finding_text(one);
  return text + programs;
}

std::string report_json(const MutationReport& report) {
  OrderedJson found = OrderedJson::array();
  OrderedJson findings = OrderedJson::array();
  OrderedJson sentences = OrderedJson::array();
  for (const ProgramFound& one : report.findings) sentences.push_back(one.finding);
  for (const ProgramFound& one : report.found) found.push_back(row_of(one));
  for (const ProgramFound& one : report.findings) findings.push_back(row_of(one));
  OrderedJson applicability = OrderedJson::object();
  for (const hunt::Checker& checker : hunt::checkers())
    applicability[std::string(checker.name)] = report.unmutated.activity.of(checker.name);
  return OrderedJson{{"schema", "zeroproof.mutation/2"},
                     {"summary", summary_of(report)},
                     {"unmutated_findings", sentences},
                     {"faults", found},
                     {"unmutated",
                      {{"cases", report.unmutated.cases},
                       {"executions", report.unmutated.executions},
                       {"seconds", report.unmutated.seconds},
                       {"coverage", mutation::coverage_json(report.unmutated.coverage)},
                       {"applicability", applicability},
                       {"findings", findings}}}}
      .dump(1);
}

}  // namespace zeroproof

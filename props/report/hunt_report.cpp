#include "props/report/hunt_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "props/program/contract.h"
#include "props/program/program_text.h"
#include "props/report/text.h"
#include "props/subject/program_reduction.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;
using subject::SubjectFinding;

constexpr std::size_t kTextColumns = 300;  // of an error's text

std::string program_of(const SubjectFinding& finding) {
  const auto contract = program::Contract::of(finding.program);
  return program::program_text(finding.program, contract ? &*contract : nullptr);
}

std::string subject_of(const SubjectFinding& finding) {
  return fmt::format("{}{}{}", finding.engine, finding.settings.empty() ? "" : " ",
                     fmt::join(finding.settings, " "));
}

// "new", or "known: DeepSpeed #7710, defect".
std::string novelty_of(const SubjectFinding& finding) {
  if (!finding.verdict.known) return "new";
  const subject::KnownFinding& known = *finding.verdict.known;
  std::string text = "known";
  for (const std::string& part : {known.name, known.issue, known.verdict})
    if (!part.empty()) text += (text == "known" ? ": " : ", ") + part;
  return text;
}

std::string difference_of(const SubjectFinding& finding) {
  if (!finding.verdict.difference) return std::string(name_of(finding.verdict.status));
  const subject::Difference& it = *finding.verdict.difference;
  return fmt::format("rank {} at {}, {}: {}", it.rank, it.at, it.what,
                     elided(visible(it.text), kTextColumns));
}

// How sure it is, and how it became small.
std::string history_of(const SubjectFinding& finding) {
  std::string text = fmt::format("case {} of seed {}", finding.id.number, finding.id.seed);
  if (finding.id.candidate > 0) text += fmt::format(", candidate {}", finding.id.candidate);
  text += "; ";
  text += finding.is_flaky() ? fmt::format("FLAKY: {} of {} runs", finding.same_runs, finding.runs)
                             : fmt::format("{} of {} runs", finding.same_runs, finding.runs);
  if (finding.is_minimized())
    text += fmt::format("; {} of {} statements, {} runs to minimise",
                        subject::statements_of(finding.program), finding.statements_before,
                        finding.shrink_runs);
  return text + "; " + counted(finding.cases(), "case");
}

std::string counts_text(const std::map<std::string, std::uint64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  return text;
}

std::uint64_t sum_of(const std::map<std::string, std::uint64_t>& counts) {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

// The most frequent first.
std::vector<const SubjectFinding*> by_frequency(const std::vector<SubjectFinding>& findings) {
  std::vector<const SubjectFinding*> sorted;
  for (const SubjectFinding& finding : findings) sorted.push_back(&finding);
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           [](const SubjectFinding* one) { return one->cases(); });
  return sorted;
}

std::string work_text(const HuntDocument& document) {
  const subject::HuntReport& report = document.report;
  const double rate = report.seconds > 0 ? static_cast<double>(report.runs) / report.seconds : 0.0;
  std::string text = fmt::format("{} cases{}{}; {} runs, {:.1f} a second, {:.0f} s\n", report.cases,
                                 report.statuses.empty() ? "" : ": ", counts_text(report.statuses),
                                 report.runs, rate, report.seconds);
  const std::uint64_t total = sum_of(report.total.statuses);
  if (total > report.cases)
    text += fmt::format("{} cases with earlier hunts: {}; {:.0f} s\n", total,
                        counts_text(report.total.statuses), report.total.seconds);
  if (report.features > 0) text += fmt::format("{} features covered\n", report.features);
  if (const std::uint64_t skipped = sum_of(report.skipped); skipped > 0)
    text += fmt::format("{} skipped, which the subject cannot do: {}\n", skipped,
                        counts_text(report.skipped));
  if (const std::uint64_t known = sum_of(report.may_show); known > 0)
    text += fmt::format("{} skipped, which may show what is known: {}\n", known,
                        counts_text(report.may_show));
  return text;
}

OrderedJson json_of(const SubjectFinding& finding, const HuntDocument& document) {
  OrderedJson json = OrderedJson::parse(subject::finding_json(finding));
  json["text"] = program_of(finding);
  json["is_flaky"] = finding.is_flaky();
  json["cases"] = finding.cases();
  json["reproduce"] = document.reproduce(finding);
  return json;
}

// What became of a finding: "as before in 3 of 3 runs", "equal", "otherwise: …".
std::string outcome_of(const ReplayedFinding& replayed) {
  const subject::Repetition& again = replayed.again;
  return (again.same_runs > 0 ? "as before " : "") + again.text();
}

// As it is now.
SubjectFinding present(const ReplayedFinding& replayed) {
  SubjectFinding finding = replayed.finding;
  if (replayed.again.verdict.is_finding()) finding.verdict = replayed.again.verdict;
  return finding;
}

}  // namespace

FindingParts finding_parts(const SubjectFinding& finding) {
  return {difference_of(finding),
          fmt::format("{}: {}", subject_of(finding), subject::version_line(finding.versions)),
          history_of(finding), program_of(finding)};
}

std::string finding_text(const SubjectFinding& finding) {
  const FindingParts parts = finding_parts(finding);
  return fmt::format("FALSIFIED {} ({})\n  {}\n  {}\n  {}\n{}", finding.verdict.signature,
                     novelty_of(finding), parts.difference, parts.subject, parts.history,
                     parts.program);
}

std::string hunt_text(const HuntDocument& document, const std::string& program) {
  const subject::HuntReport& report = document.report;
  std::string text = fmt::format("seed {}\n", document.seed);
  if (!document.engine.empty())
    text += fmt::format("hunt {}: {}\n{}", document.engine, document.versions, work_text(document));
  for (const SubjectFinding* const one : by_frequency(report.findings))
    text +=
        fmt::format("  {:5}  {}  ({})\n", one->cases(), one->verdict.signature, novelty_of(*one));
  if (report.findings.empty()) text += "no finding\n";
  if (!report.earlier.empty())
    text += fmt::format("{} of the findings of earlier hunts not met\n", report.earlier.size());
  for (const SubjectFinding& finding : report.findings)
    text += fmt::format("\n{}reproduce: {} {}\n", finding_text(finding), program,
                        document.reproduce(finding));
  return text;
}

std::string issue_text(const SubjectFinding& finding, const std::string& reproduce,
                       const std::string& script) {
  const subject::Difference place = finding.verdict.difference.value_or(subject::Difference{});
  std::string text =
      fmt::format("# {}: {}\n\n## Versions\n\n", subject_of(finding), finding.verdict.signature);
  for (const auto& [name, version] : finding.versions)
    text += fmt::format("- {} {}\n", name, version);
  text += fmt::format("\n## Program\n\n```\n{}```\n\n", program_of(finding));
  if (!script.empty()) text += fmt::format("## Script\n\n```python\n{}```\n\n", script);
  text +=
      fmt::format("## Observed\n\n{}\n\n", place.observed.empty() ? place.text : place.observed);
  text += fmt::format("## Expected\n\n{}\n\n",
                      place.expected.empty()
                          ? "What plain, unsharded PyTorch does with the same program."
                          : place.expected + " (plain, unsharded PyTorch)");
  text += fmt::format("## First bad event\n\nRank {}, statement `{}`: {}.\n\n", place.rank,
                      place.at, place.what);
  return text + fmt::format("## Reproduce\n\n```\n{}\n```\n\n{}. {}.\n", reproduce,
                            history_of(finding), novelty_of(finding));
}

std::string hunt_json(const HuntDocument& document) {
  const subject::HuntReport& report = document.report;
  OrderedJson findings = OrderedJson::array();
  for (const SubjectFinding& finding : report.findings)
    findings.push_back(json_of(finding, document));
  OrderedJson earlier = OrderedJson::array();
  for (const SubjectFinding& finding : report.earlier) earlier.push_back(finding.verdict.signature);
  return OrderedJson{{"schema", "zeroproof.hunt/1"},
                     {"seed", document.seed},
                     {"engine", document.engine},
                     {"versions", document.versions},
                     {"cases", report.cases},
                     {"runs", report.runs},
                     {"hangs", report.hangs},
                     {"statuses", report.statuses},
                     {"skipped", report.skipped},
                     {"may_show", report.may_show},
                     {"total", report.total.statuses},
                     {"features", report.features},
                     {"problem", report.problem ? report.problem->text : ""},
                     {"findings", findings},
                     {"not_met", earlier}}
      .dump(1);
}

std::vector<JUnitCase> hunt_cases(const HuntDocument& document) {
  std::vector<JUnitCase> cases;
  const std::string suite = "hunt " + document.engine;
  for (const SubjectFinding& finding : document.report.findings)
    cases.push_back({.suite = suite,
                     .name = finding.verdict.signature,
                     .outcome = JUnitOutcome::failed,
                     .text = finding_text(finding)});
  if (cases.empty()) cases.push_back({.suite = suite, .name = "equals plain PyTorch"});
  if (document.report.problem)
    cases.push_back({.suite = suite,
                     .name = "the subject runs",
                     .outcome = JUnitOutcome::error,
                     .text = document.report.problem->text});
  return cases;
}

std::string hunt_replay_text(const std::vector<ReplayedFinding>& replayed) {
  std::string text;
  for (const ReplayedFinding& one : replayed)
    text += fmt::format("{}\n{}now {}: {}\n", one.source, finding_text(present(one)), one.versions,
                        outcome_of(one));
  return text;
}

std::string hunt_replay_json(const std::vector<ReplayedFinding>& replayed) {
  OrderedJson all = OrderedJson::array();
  for (const ReplayedFinding& one : replayed)
    all.push_back({{"source", one.source},
                   {"signature", one.finding.verdict.signature},
                   {"versions", one.versions},
                   {"runs", one.again.runs},
                   {"same_runs", one.again.same_runs},
                   {"verdict", OrderedJson::parse(subject::verdict_json(one.again.verdict))}});
  return OrderedJson{{"schema", "zeroproof.hunt_replay/1"}, {"findings", all}}.dump(1);
}

std::vector<JUnitCase> hunt_replay_cases(const std::vector<ReplayedFinding>& replayed) {
  std::vector<JUnitCase> cases;
  for (const ReplayedFinding& one : replayed) {
    JUnitCase junit{.suite = "hunt replay", .name = one.finding.verdict.signature};
    if (one.again.same_runs > 0 || one.again.verdict.is_finding()) {
      junit.outcome = JUnitOutcome::failed;
      junit.text = finding_text(present(one));
    }
    cases.push_back(std::move(junit));
  }
  return cases;
}

LocatedFindings located_findings(const HuntDocument& document) {
  LocatedFindings all;
  for (const SubjectFinding& finding : document.report.findings)
    all.push_back({.rule = "subject." + finding.file_stem(),
                   .number = "",
                   .statement = "a program trains as plain, unsharded PyTorch does",
                   .source = finding.verdict.known ? finding.verdict.known->issue : "",
                   .level = finding.verdict.known ? FindingLevel::warning : FindingLevel::error,
                   .text = fmt::format("{}: {}", finding.verdict.signature, difference_of(finding)),
                   .subject = fmt::format("{}, {}", subject_of(finding),
                                          subject::version_line(finding.versions)),
                   .rank = finding.verdict.difference ? finding.verdict.difference->rank : -1,
                   .reproduce = document.reproduce(finding)});
  return all;
}

}  // namespace zeroproof

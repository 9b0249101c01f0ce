#include "props/report/page/hunt_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/report/page/report_page.h"
#include "props/report/web_files.h"

namespace zeroproof {
namespace {

using subject::SubjectFinding;

std::string finding_of(const SubjectFinding& finding, const HuntDocument& document,
                       const std::string& program) {
  const std::string stem = html_text(finding.file_stem());
  return fmt::format(
      "<section class=\"finding\" tabindex=\"-1\" id=\"{0}\">\n<h3>{1} {2}</h3>\n<pre>{3}</pre>\n"
      "<p><a href=\"{0}.html\">its run on our engine</a> · <a href=\"{0}.py\">script</a> · "
      "<a href=\"{0}.issue.md\">issue text</a> · <a href=\"{0}.json\">JSON</a></p>\n"
      "<p>reproduce: {4}</p>\n</section>\n",
      stem,
      html_chip(finding.verdict.known ? "known" : "new",
                finding.verdict.known ? ReportMood::open : ReportMood::bad),
      html_text(finding.verdict.signature), escape_html(finding_text(finding)),
      html_code(fmt::format("{} {}", program, document.reproduce(finding))));
}

// New ones first, the most frequent of each first.
std::vector<const SubjectFinding*> in_order(const std::vector<SubjectFinding>& findings) {
  std::vector<const SubjectFinding*> sorted;
  for (const SubjectFinding& finding : findings) sorted.push_back(&finding);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    const bool a_is_known = a->verdict.known.has_value();
    const bool b_is_known = b->verdict.known.has_value();
    return a_is_known != b_is_known ? b_is_known : a->cases() > b->cases();
  });
  return sorted;
}

std::string counts_of(const std::map<std::string, std::uint64_t>& counts) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, count] : counts)
    rows.push_back({html_text(name), fmt::format("{}", count)});
  return rows.empty() ? "" : html_table({}, rows);
}

}  // namespace

std::string hunt_page(const HuntDocument& document, const std::string& program,
                      const std::string& asked) {
  const subject::HuntReport& report = document.report;
  const auto findings = in_order(report.findings);
  const bool has_new = !findings.empty() && !findings.front()->verdict.known;
  ReportFrame frame{.title = "zeroproof hunt", .asked = asked};
  frame.verdict = report.problem     ? "ended early"
                  : findings.empty() ? "held"
                  : has_new          ? "FALSIFIED"
                                     : "known findings";
  frame.mood = has_new                               ? ReportMood::bad
               : findings.empty() && !report.problem ? ReportMood::good
                                                     : ReportMood::open;
  frame.summary = fmt::format("{}; seed {}; {} cases, {} findings{}{}", document.engine,
                              document.seed, report.cases, findings.size(),
                              document.versions.empty() ? "" : "; ", document.versions);
  if (report.problem) frame.sections.push_back({"It ended early", html_text(report.problem->text)});
  std::string others;
  for (std::size_t at = 0; at < findings.size(); ++at) {
    const std::string html = finding_of(*findings[at], document, program);
    if (at == 0)
      frame.sections.push_back({has_new ? "The first finding" : "A known finding", html});
    else
      others += html;
  }
  frame.sections.push_back({"Other findings", others});
  frame.sections.push_back({"Cases", counts_of(report.statuses)});
  frame.sections.push_back({"Skipped, which the subject cannot do", counts_of(report.skipped)});
  return report_page(frame);
}

}  // namespace zeroproof

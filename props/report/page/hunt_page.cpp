#include "props/report/page/hunt_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/report/page/report_page.h"
#include "props/report/text.h"
#include "props/report/web_files.h"

namespace zeroproof {
namespace {

using subject::SubjectFinding;

std::string links_of(const std::string& stem, bool has_script) {
  std::string html =
      fmt::format("<p><a href=\"{}.html\">picture of a run on zeroproof's engine</a>", stem);
  if (has_script) html += fmt::format(" · <a href=\"{}.py\">Python script</a>", stem);
  return html + fmt::format(
                    " · <a href=\"{0}.issue.md\">issue text</a> · <a "
                    "href=\"{0}.json\">JSON</a></p>\n",
                    stem);
}

std::string finding_of(const SubjectFinding& finding, const HuntDocument& document,
                       const HuntPageWords& words) {
  const std::string stem = finding.file_stem();
  const FindingParts parts = finding_parts(finding);
  const bool is_known = finding.verdict.known.has_value();
  return fmt::format(
      "<section class=\"finding\" tabindex=\"-1\" id=\"{}\">\n<h3>{} {}</h3>\n<p>{}</p>\n"
      "<pre>{}</pre>\n<p class=\"faint\">{}<br>{}</p>\n{}<p>reproduce: {}</p>\n</section>\n",
      html_text(stem),
      html_chip(is_known ? "known" : "new", is_known ? ReportMood::open : ReportMood::bad),
      html_text(finding.verdict.signature), html_text(parts.difference), escape_html(parts.program),
      html_text(parts.subject), html_text(parts.history),
      links_of(html_text(stem), words.scripts.contains(stem)),
      html_command(fmt::format("{} {}", words.program, document.reproduce(finding))));
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

std::string hunt_page(const HuntDocument& document, const HuntPageWords& words) {
  const subject::HuntReport& report = document.report;
  const auto findings = in_order(report.findings);
  const bool has_new = !findings.empty() && !findings.front()->verdict.known;
  ReportFrame frame{.title = "zeroproof hunt", .asked = words.asked};
  frame.verdict = report.problem     ? "ended early"
                  : findings.empty() ? "held"
                  : has_new          ? "FALSIFIED"
                                     : "known findings";
  frame.mood = has_new                               ? ReportMood::bad
               : findings.empty() && !report.problem ? ReportMood::good
                                                     : ReportMood::open;
  frame.summary = fmt::format("{}; seed {}; {} cases, {}{}{}", document.engine, document.seed,
                              report.cases, counted(findings.size(), "finding"),
                              document.versions.empty() ? "" : "; ", document.versions);
  if (report.problem) frame.sections.push_back({"It ended early", html_text(report.problem->text)});
  std::string others;
  for (std::size_t at = 0; at < findings.size(); ++at) {
    const std::string html = finding_of(*findings[at], document, words);
    if (at == 0)
      frame.sections.push_back({has_new ? "The first finding" : "A known finding", html});
    else
      others += html;
  }
  frame.sections.push_back({"Other findings", others});
  frame.sections.push_back({"Cases", counts_of(report.statuses)});
  frame.sections.push_back({"Skipped: the engine cannot run them", counts_of(report.skipped)});
  return report_page(frame);
}

}  // namespace zeroproof

#include "props/report/page/report_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/replay/rank_set.h"
#include "props/report/diagnosis_report.h"
#include "props/report/html.h"
#include "props/report/text.h"
#include "props/report/web_files.h"

namespace zeroproof {
namespace {

std::string_view mood_class(ReportMood mood) {
  constexpr std::string_view kNames[] = {"good", "bad", "none"};
  return kNames[static_cast<std::size_t>(mood)];
}

std::string head_of(const ReportFrame& frame) {
  std::string html = frame.home.empty() ? ""
                                        : fmt::format("<p><a href=\"{}\">← report</a></p>\n",
                                                      html_text(frame.home));
  html += fmt::format("<header class=\"top\"><h1>{}</h1>{}</header>\n", html_text(frame.title),
                      html_chip(frame.verdict, frame.mood));
  if (!frame.asked.empty()) html += fmt::format("<p>{}</p>\n", html_command(frame.asked));
  if (!frame.summary.empty())
    html += fmt::format("<p class=\"faint\">{}</p>\n", html_text(frame.summary));
  return html;
}

// The lanes are a page of their own, unpacked when somebody opens them.
std::string lanes_of(const ReportFrame& frame) {
  if (frame.lanes.empty()) return {};
  return fmt::format(
      "<details id=\"lanes\"><summary>All lanes of these ranks, to zoom and search (O)</summary>"
      "</details>\n<script id=\"lanes-page\" type=\"application/gzip\">{}</script>\n",
      packed_text(frame.lanes));
}

std::string definition(std::string_view name, const std::string& html) {
  return html.empty() ? "" : fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, html);
}

constexpr std::string_view kClock =
    "<abbr title=\"logical clock: the number of an event on its rank\">lc</abbr>";

std::string moments_of(const Diagnosis& one) {
  std::vector<std::vector<std::string>> rows;
  for (const DiagnosisMoment& moment : one.order)
    rows.push_back({moment.is_bad ? "<b class=\"mark\" title=\"bad\">›</b>" : "",
                    fmt::format("rank {}", moment.rank),
                    moment.lc > 0 ? fmt::format("{} {}", kClock, moment.lc) : "",
                    html_text(moment.text)});
  return rows.empty() ? "" : html_table({}, rows);
}

std::string waits_of(const Diagnosis& one) {
  std::string html;
  for (const DiagnosisWait& wait : one.waits) {
    const std::vector<std::int32_t> who = wait.ranks.empty() ? std::vector{wait.rank} : wait.ranks;
    html += fmt::format("{}{} wait{}{} in {}", html.empty() ? "" : "<br>", rank_words(who),
                        who.size() > 1 ? "" : "s",
                        wait.for_ranks.empty() ? "" : " for " + rank_words(wait.for_ranks),
                        html_text(wait.text));
  }
  return html;
}

ReportMood mood_of(Gravity gravity) {
  return gravity == Gravity::defect ? ReportMood::bad : ReportMood::open;
}

}  // namespace

std::string html_text(std::string_view text) {
  return escape_html(visible(text));
}

std::string html_code(std::string_view text) {
  return fmt::format("<code>{}</code>", html_text(text));
}

std::string html_command(std::string_view text) {
  std::string html;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const bool is_flag = word.starts_with("--");
    html += fmt::format("{}{}{}{}", begin > 0 ? " " : "", is_flag ? "<span class=\"flag\">" : "",
                        html_text(word), is_flag ? "</span>" : "");
    begin = end + 1;
  }
  return fmt::format("<code>{}</code>", html);
}

std::string html_chip(std::string_view word, ReportMood mood) {
  return fmt::format("<span class=\"chip {}\">{}</span>", mood_class(mood), html_text(word));
}

std::string html_table(const std::vector<std::string>& heads,
                       const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<div class=\"card\"><table>\n";
  if (!heads.empty()) {
    html += "<thead><tr>";
    for (const std::string& head : heads) html += fmt::format("<th>{}</th>", html_text(head));
    html += "</tr></thead>\n";
  }
  html += "<tbody>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (const std::string& cell : row) html += fmt::format("<td>{}</td>", cell);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string html_diagnosis(const Diagnosis& one, std::size_t number, const std::string& picture) {
  std::string html = fmt::format(
      "<section class=\"finding\" id=\"finding-{}\" tabindex=\"-1\">\n<h3>{} "
      "{}{}</h3>\n<p>{}</p>\n",
      number, html_chip(gravity_name(one.gravity), mood_of(one.gravity)), html_text(one.kind),
      one.ranks.empty() ? "" : fmt::format(" <small>{}</small>", rank_words(one.ranks)),
      html_text(one.what));
  html += moments_of(one);
  if (!picture.empty()) html += fmt::format("<div class=\"chart\">{}</div>\n", picture);
  html += "<dl>\n";
  html += definition("parameter", html_text(one.parameter));
  if (one.last_common)
    html += definition("in common", "the ranks agree up to " + html_text(one.last_common->text));
  html += definition("waits", waits_of(one));
  html += definition("rule", html_text(one.rule));
  html += definition("look at", html_text(one.look_at));
  if (!one.files.empty())
    html += definition("in",
                       html_code(one.files.front()) +
                           (one.files.size() > 1 ? fmt::format(" and {} more", one.files.size() - 1)
                                                 : std::string()));
  return html + "</dl>\n</section>\n";
}

std::string report_page(const ReportFrame& frame) {
  std::string body = head_of(frame);
  body +=
      "<nav class=\"tools\"><label class=\"search\"><span aria-hidden=\"true\">⌕</span><input "
      "id=\"query\" type=\"search\" placeholder=\"search\" aria-label=\"search\"><output "
      "id=\"matches\"></output></label><button type=\"button\" id=\"help\" aria-label=\"keys\" "
      "title=\"keys (?)\">?</button></nav>\n<main>\n";
  bool is_first = true;
  for (const ReportSection& section : frame.sections) {
    if (section.html.empty()) continue;
    body += fmt::format("<section class=\"part\">\n<h2>{}</h2>\n{}</section>\n",
                        html_text(section.title), section.html);
    if (std::exchange(is_first, false)) body += lanes_of(frame);
  }
  body += "</main>\n<div id=\"keys\" hidden></div>\n<script>\n(() => {\n\"use strict\";\n";
  body += web_file("report.js");
  body += "})();\n</script>\n";
  return html_document(frame.title, web_file("report.css"), body);
}

}  // namespace zeroproof

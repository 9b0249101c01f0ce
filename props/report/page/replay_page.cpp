#include "props/report/page/replay_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "props/replay/rank_set.h"
#include "props/report/html.h"
#include "props/report/page/report_page.h"
#include "props/report/picture/pictures.h"
#include "props/report/replay_text.h"
#include "props/report/svg.h"
#include "props/report/text.h"

namespace zeroproof {
namespace {

constexpr std::size_t kChartRows = 48;
constexpr std::size_t kCausesShown = 200;
constexpr std::uint64_t kNear = 50'000;  // events of a rank around its bad one that lanes show

// The first cause as lanes: the rank at fault beside one that is right.
class CausePicture {
 public:
  CausePicture(const ReplayReport& report, const Diagnosis& cause) : cause_(cause) {
    if (cause.files.empty()) return;
    files_.push_back(cause.files.front());
    if (cause.files.back() != files_.front()) files_.push_back(cause.files.back());
    for (const TraceReplay& trace : report.traces)
      if (trace.story && std::find(files_.begin(), files_.end(), trace.path) != files_.end())
        file_of_[trace.story->rank] = trace.path;
    for (const DiagnosisMoment& moment : cause.order)
      if (moment.lc > 0) near_.try_emplace(moment.rank, moment.lc);
    make();
  }

  std::string chart() const {
    return picture_ ? picture_svg(*picture_, {.rows_max = kChartRows}) : "";
  }
  std::string lanes() const { return picture_ ? picture_html(*picture_) : ""; }

 private:
  void make() {
    LocatedFindings marks;
    for (const DiagnosisMoment& moment : cause_.order) {
      const auto file = file_of_.find(moment.rank);
      if (!moment.is_bad || moment.lc == 0 || file == file_of_.end()) continue;
      marks.push_back({.rule = cause_.kind,
                       .statement = cause_.rule,
                       .text = marks.empty() ? cause_.what : moment.text,
                       .file = file->second,
                       .lc = moment.lc,
                       .rank = moment.rank});
    }
    if (marks.empty()) return;
    auto picture =
        trace_picture(files_, marks, {.shows = [this](const HookEvent& event) {
                        const auto at = near_.find(event.rank);
                        if (at == near_.end()) return event.lc <= kNear;
                        return event.lc + kNear >= at->second && event.lc <= at->second + kNear;
                      }});
    if (picture) picture_ = std::move(*picture);
  }

  const Diagnosis& cause_;
  std::vector<std::string> files_;
  std::map<std::int32_t, std::string> file_of_;  // by rank
  std::map<std::int32_t, std::uint64_t> near_;   // by rank: the clock of its first moment
  std::optional<Picture> picture_;
};

std::string causes_of(const std::vector<Diagnosis>& all) {
  std::string html;
  for (std::size_t at = 1; at < all.size() && at < kCausesShown; ++at)
    html += html_diagnosis(all[at], at + 1, "");
  if (all.size() > kCausesShown)
    html +=
        fmt::format("<p class=\"faint\">{} more: see replay.json</p>\n", all.size() - kCausesShown);
  return html;
}

ReportMood mood_of(const TraceReplay& trace) {
  return trace.fault ? ReportMood::open : trace.agrees() ? ReportMood::good : ReportMood::bad;
}

// Ranks that are alike share a row.
std::string ranks_of(const ReplayReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const AlikeTraces& alike : alike_traces(report)) {
    const TraceReplay& first = *alike.first;
    const char* word = first.fault ? "unreadable" : first.agrees() ? "ok" : "findings";
    rows.push_back({html_chip(word, mood_of(first)), html_text(first.program),
                    alike.ranks.empty() ? "" : rank_words(alike.ranks, alike.ranks.size()),
                    html_text(alike.levels),
                    html_code(first.path) +
                        (alike.count > 1 ? fmt::format(" and {} more", alike.count - 1) : "") +
                        (first.fault ? "<br>" + html_text(first.fault->text) : "")});
  }
  return rows.empty() ? ""
                      : html_table({"", "program", "ranks", "levels that agree", "file"}, rows);
}

std::string compared_of(const ReplayReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const RunComparison& run : report.runs) {
    const std::string who = run.ranks.empty() ? html_text(run.run) : rank_words(run.ranks);
    for (const std::string& one : run.checked) rows.push_back({who, "compared", html_text(one)});
    for (const std::string& one : run.skipped)
      rows.push_back({who, "<i>not compared</i>", html_text(one)});
  }
  return rows.empty() ? "" : html_table({"ranks", "", "what"}, rows);
}

}  // namespace

std::string replay_page(const ReplayReport& report, const ReplayAnswers& answers,
                        const std::string& asked) {
  const ReplaySummary summary = report.summary();
  const auto& all = answers.diagnosis;
  const bool has_defect = !all.empty() && all.front().gravity == Gravity::defect;
  const bool is_good = !has_defect && summary.ok == summary.traces;
  ReportFrame frame{.title = "zeroproof replay", .asked = asked};
  frame.verdict = has_defect               ? all.front().kind
                  : summary.unreadable > 0 ? "unreadable"
                  : is_good                ? "held"
                                           : "findings";
  frame.mood = has_defect ? ReportMood::bad : is_good ? ReportMood::good : ReportMood::open;
  frame.summary = fmt::format("{}: {} ok, {} with findings, {} unreadable; {}",
                              counted(summary.traces, "trace"), summary.ok, summary.mismatched,
                              summary.unreadable, counted(all.size(), "cause"));
  if (!all.empty()) {
    const CausePicture picture(report, all.front());
    frame.lanes = picture.lanes();
    frame.sections.push_back({has_defect ? "The first cause" : "Worth knowing",
                              html_diagnosis(all.front(), 1, picture.chart())});
  }
  frame.sections.push_back({"Other entries", causes_of(all)});
  frame.sections.push_back({"Ranks", ranks_of(report)});
  frame.sections.push_back({"Compared", compared_of(report)});
  return report_page(frame);
}

}  // namespace zeroproof

#include "props/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "props/report/text.h"
#include "props/report/web_files.h"

namespace zeroproof {
namespace {

constexpr int kMargin = 18;
constexpr int kClock = 46;  // columns of the logical clock
constexpr int kRow = 22;
constexpr int kSentenceRow = 17;
constexpr int kIndent = 15;
constexpr int kLaneMin = 190;
constexpr int kWordsMax = 56;  // letters of an event; a longer text would push other lanes away
constexpr int kWidthMin = 560;
constexpr double kLetter = 6.75;      // of the text, on average
constexpr double kCodeLetter = 6.95;  // of the command

int text_width(std::string_view text, double letter = kLetter) {
  return static_cast<int>(static_cast<double>(display_width(text)) * letter) + 1;
}

// One line of the chart: an event, the same one on other ranks, or how many were left out here.
struct Row {
  std::vector<std::uint32_t> events;
  std::size_t left_out = 0;
  std::vector<const PictureFinding*> findings;
  int y = 0;
};

struct Lane {
  std::string title;
  int x = 0;
  int width = 0;
};

std::vector<std::uint32_t> in_order(const Picture& picture) {
  std::vector<std::uint32_t> events(picture.events.size());
  for (std::uint32_t i = 0; i < events.size(); ++i) events[i] = i;
  std::stable_sort(events.begin(), events.end(), [&](std::uint32_t a, std::uint32_t b) {
    return picture.events[a].tick < picture.events[b].tick;
  });
  return events;
}

class Chart {
 public:
  Chart(const Picture& picture, const SvgOptions& options) : picture_(picture) {
    for (const PictureFinding& finding : picture.findings) {
      if (finding.event >= 0) findings_of_[finding.event].push_back(&finding);
    }
    select_rows(options);
    lay_out_lanes();
    lay_out_rows();
  }

  std::string text() {
    draw_head();
    draw_spans();
    for (const auto& [track, lane] : lanes_) {
      put("<line class=\"lane\" x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\"/>\n", lane.x,
          head_ + 24, foot_);
    }
    draw_ties();
    for (const Row& row : rows_) draw_row(row);
    draw_foot();
    return fmt::format(
        "<svg class=\"zp\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"{2}\">\n<style>\n{3}</style>\n"
        "<rect class=\"paper\" width=\"{0}\" height=\"{1}\" rx=\"8\"/>\n{4}</svg>\n",
        width_, height_, escape_html(picture_.title), web_file("timeline.css"), out_);
  }

 private:
  void select_rows(const SvgOptions& options) {
    std::vector<std::uint32_t> events;
    for (const std::uint32_t event : in_order(picture_)) {
      const bool is_bad = findings_of_.contains(event);
      if (!picture_.events[event].is_detail || options.shows_details || is_bad) {
        events.push_back(event);
      }
    }
    std::vector<bool> is_kept = kept(events, options.rows_max);
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (is_kept[i]) {
        keep(events[i]);
      } else if (rows_.empty() || rows_.back().left_out == 0) {
        rows_.push_back({.left_out = 1});
      } else {
        ++rows_.back().left_out;
      }
    }
  }

  // Ranks that do the same at the same place share a line.
  void keep(std::uint32_t event) {
    const auto found = findings_of_.find(event);
    const bool is_bad = found != findings_of_.end();
    if (!is_bad && !rows_.empty() && is_alike(rows_.back(), picture_.events[event])) {
      rows_.back().events.push_back(event);
      return;
    }
    rows_.push_back({.events = {event}});
    if (is_bad) rows_.back().findings = found->second;
  }

  bool is_alike(const Row& row, const PictureEvent& event) const {
    if (row.events.empty() || !row.findings.empty()) return false;
    return std::all_of(row.events.begin(), row.events.end(), [&](std::uint32_t other) {
      const PictureEvent& one = picture_.events[other];
      return one.tick == event.tick && one.lc == event.lc && one.track != event.track;
    });
  }

  // Around the findings, each with as many neighbours as there is room for; else the beginning.
  std::vector<bool> kept(const std::vector<std::uint32_t>& events, std::size_t rows_max) const {
    if (events.size() <= rows_max) return std::vector<bool>(events.size(), true);
    std::vector<bool> is_kept(events.size(), false);
    const std::size_t reach = rows_max / std::max<std::size_t>(findings_of_.size(), 1) / 2;
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (!findings_of_.contains(events[i])) continue;
      const std::size_t last = std::min(i + reach + 1, events.size());
      for (std::size_t k = i - std::min(i, reach); k < last; ++k) is_kept[k] = true;
    }
    if (findings_of_.empty()) std::fill_n(is_kept.begin(), rows_max, true);
    return is_kept;
  }

  std::string words(const PictureEvent& event) const {
    return elided(picture_.strings[event.words], kWordsMax);
  }

  static int indent(const PictureEvent& event) { return std::clamp(event.depth, 0, 8) * kIndent; }

  void lay_out_lanes() {
    for (const Row& row : rows_) {
      for (const std::uint32_t id : row.events) {
        const PictureEvent& event = picture_.events[id];
        Lane& lane = lanes_[event.track];
        lane.width = std::max(lane.width, 2 * indent(event) + text_width(words(event)) + 44);
      }
    }
    int x = kMargin + kClock + 14;
    for (auto& [track, lane] : lanes_) {
      const PictureTrack& of = picture_.tracks[track];
      lane.title = picture_.processes[of.process].title;
      if (lanes_.size() > picture_.processes.size()) lane.title += "  " + of.name;
      lane.x = x;
      lane.width = std::max({lane.width, kLaneMin, text_width(lane.title) + 20});
      x += lane.width;
    }
    width_ = std::max(x + kMargin, kWidthMin);
  }

  void lay_out_rows() {
    notes_ = wrapped_lines(picture_.note, letters(kLetter));
    head_ = kMargin + 26 + static_cast<int>(notes_.size()) * 18 + 10;
    int y = head_ + 30;
    for (Row& row : rows_) {
      row.y = y;
      y += kRow;
      for (const PictureFinding* finding : row.findings) {
        y += static_cast<int>(sentence_lines(*finding).size()) * kSentenceRow + 8;
      }
      for (const std::uint32_t event : row.events) y_of_[event] = row.y;
    }
    foot_ = y;
  }

  std::size_t letters(double letter) const {
    return static_cast<std::size_t>(static_cast<double>(width_ - 2 * kMargin) / letter);
  }

  std::vector<std::string> sentence_lines(const PictureFinding& finding) const {
    const bool has_number = !finding.id.starts_with(finding.number);
    const std::string text =
        fmt::format("{}{}: {}", has_number ? finding.number + " " : "", finding.id, finding.text);
    return wrapped_lines(text, letters(kLetter) - 12);
  }

  template <class... Values>
  void put(fmt::format_string<Values...> pattern, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), pattern, std::forward<Values>(values)...);
  }

  void put_text(std::string_view style, int x, int y, std::string_view text) {
    put("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n", style, x, y, escape_html(text));
  }

  void draw_head() {
    put_text("title", kMargin, kMargin + 14, elided(picture_.title, letters(9.0)));
    int y = kMargin + 34;
    for (const std::string& line : notes_) {
      put_text("faint", kMargin, y, line);
      y += 18;
    }
    put_text("clock", kMargin + kClock, head_ + 14, "lc");
    for (const auto& [track, lane] : lanes_) put_text("head", lane.x - 5, head_ + 14, lane.title);
  }

  // Graph tasks and recomputes as boxes under their events, outer ones first.
  void draw_spans() {
    for (const PictureBar& bar : picture_.bars) {
      const bool is_recompute = bar.category == PictureCategory::recompute;
      const bool is_task = bar.category == PictureCategory::graph_task || is_recompute;
      const auto begin = y_of_.find(bar.begin);
      const auto end = y_of_.find(bar.end);
      const auto lane = lanes_.find(bar.track);
      const bool is_seen = begin != y_of_.end() && end != y_of_.end() && lane != lanes_.end();
      if (!is_task || !is_seen || picture_.tracks[bar.track].kind != PictureTrackKind::thread)
        continue;
      const int inset = indent(picture_.events[bar.begin]);
      put("<rect class=\"span{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"7\"/>\n",
          is_recompute ? " recompute" : "", lane->second.x + inset - 11, begin->second - 9,
          lane->second.width - 2 * inset - 14, end->second - begin->second + 19);
    }
  }

  // The same collective on several lanes.
  void draw_ties() {
    std::map<std::int64_t, std::vector<std::uint32_t>> peers;
    for (const PictureBar& bar : picture_.bars) {
      if (bar.peer >= 0 && y_of_.contains(bar.begin)) peers[bar.peer].push_back(bar.begin);
    }
    for (const auto& [peer, events] : peers) {
      for (std::size_t i = 1; i < events.size(); ++i) {
        const auto [from, y0] = place_of(events[i - 1]);
        const auto [x1, y1] = place_of(events[i]);
        const int x0 = from + 20 + text_width(words(picture_.events[events[i - 1]]));
        if (x0 < x1) put("<path class=\"tie\" d=\"M{} {}L{} {}\"/>\n", x0, y0, x1 - 8, y1);
      }
    }
  }

  std::pair<int, int> place_of(std::uint32_t event) const {
    const PictureEvent& of = picture_.events[event];
    return {lanes_.at(of.track).x + indent(of), y_of_.at(event)};
  }

  void draw_row(const Row& row) {
    if (row.events.empty()) {
      put_text("faint", kMargin + kClock + 9, row.y + 4,
               fmt::format("… {} events left out", row.left_out));
      return;
    }
    const bool is_latent = std::all_of(row.findings.begin(), row.findings.end(),
                                       [](const auto* one) { return one->is_latent; });
    const std::string_view style = row.findings.empty() ? "" : is_latent ? "latent" : "bad";
    if (!style.empty()) draw_sentences(row, style);
    put_text("clock", kMargin + kClock, row.y + 4,
             std::to_string(picture_.events[row.events.front()].lc));
    for (const std::uint32_t event : row.events) draw_event(event, style);
  }

  void draw_event(std::uint32_t id, std::string_view style) {
    const PictureEvent& event = picture_.events[id];
    const auto [x, y] = place_of(id);
    put("<circle class=\"c{}\" cx=\"{}\" cy=\"{}\" r=\"4.5\"/>\n", static_cast<int>(event.category),
        x, y);
    if (!style.empty()) {
      put("<circle class=\"{}-ring\" cx=\"{}\" cy=\"{}\" r=\"8\"/>\n", style, x, y);
    }
    put_text(style, x + 13, y + 4, words(event));
  }

  void draw_sentences(const Row& row, std::string_view style) {
    int height = kRow;
    for (const PictureFinding* finding : row.findings)
      height += static_cast<int>(sentence_lines(*finding).size()) * kSentenceRow + 8;
    put("<rect class=\"{}-row\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"7\"/>\n", style,
        kMargin - 8, row.y - 11, width_ - 2 * kMargin + 16, height);
    int y = row.y + kRow;
    for (const PictureFinding* finding : row.findings) {
      for (const std::string& line : sentence_lines(*finding)) {
        put_text(fmt::format("sentence {}", finding->is_latent ? "latent" : "bad"),
                 kMargin + kClock + 9, y, line);
        y += kSentenceRow;
      }
      y += 8;
    }
  }

  void draw_foot() {
    int y = foot_ + 14;
    std::vector<std::string> lines;
    if (!picture_.reproduce.empty()) {
      for (std::string& line :
           wrapped_lines("reproduce: " + picture_.reproduce, letters(kCodeLetter))) {
        lines.push_back(std::move(line));
      }
    }
    for (const std::string& line : lines) {
      put_text("code", kMargin, y, line);
      y += 16;
    }
    height_ = y + 4;
  }

  const Picture& picture_;
  std::map<std::int64_t, std::vector<const PictureFinding*>> findings_of_;  // by event
  std::vector<Row> rows_;
  std::map<std::uint32_t, Lane> lanes_;  // by track
  std::map<std::int64_t, int> y_of_;     // by event
  std::vector<std::string> notes_;
  std::string out_;
  int head_ = 0;
  int foot_ = 0;
  int width_ = 0;
  int height_ = 0;
};

}  // namespace

std::string picture_svg(const Picture& picture, const SvgOptions& options) {
  return Chart(picture, options).text();
}

std::string picture_text(const Picture& picture, const TimelineOptions& options) {
  std::map<std::int64_t, std::vector<std::string>> marks;
  for (const PictureFinding& finding : picture.findings) {
    marks[finding.event].push_back(fmt::format("{}: {}", finding.id, finding.text));
  }
  std::vector<TimelineRow> rows;
  for (const std::uint32_t id : in_order(picture)) {
    const PictureEvent& event = picture.events[id];
    rows.push_back({.rank = picture.processes[event.process].rank,
                    .thread = event.thread,
                    .depth = event.depth,
                    .lc = event.lc,
                    .text = picture.strings[event.words],
                    .is_detail = event.is_detail,
                    .marks = marks[id]});
  }
  return timeline_text(std::move(rows), options);
}

}  // namespace zeroproof

#include "props/report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "props/report/event_words.h"
#include "props/report/text.h"

namespace zeroproof {
namespace {

constexpr std::size_t kLaneColumnsMin = 26;
constexpr std::size_t kGap = 2;  // blanks between columns
constexpr std::size_t kIndentMax = 12;
constexpr std::string_view kMarked = ">> ";
constexpr std::string_view kUnmarked = "   ";

using LaneKey = std::pair<std::int32_t, std::int32_t>;  // rank, thread

using RowText = TimelineRow;

class Timeline {
 public:
  Timeline(std::vector<TimelineRow> rows, const TimelineOptions& options) : options_(options) {
    for (TimelineRow& row : rows) {
      if (row.is_detail && !options_.shows_details && row.marks.empty()) continue;
      rows_.push_back(std::move(row));
    }
    lay_out();
  }

  std::string text() const {
    std::string lines = header();
    for (const RowText& row : rows_) {
      lines += event_line(row);
      for (const std::string& mark : row.marks) lines += mark_lines(row, mark);
    }
    return lines;
  }

 private:
  void lay_out() {
    std::map<LaneKey, std::size_t> lanes;
    for (const RowText& row : rows_) {
      lanes.emplace(lane_of(row), 0);
      clock_columns_ = std::max(clock_columns_, fmt::to_string(row.lc).size());
      has_threads_ = has_threads_ || row.thread != rows_.front().thread;
    }
    std::size_t next = 0;
    for (auto& [lane, column] : lanes) column = next++;
    lanes_ = std::move(lanes);
    if (lanes_.empty()) return;
    const std::size_t start = kMarked.size() + clock_columns_ + kGap;
    const std::size_t room = options_.columns > start ? options_.columns - start : 1;
    is_narrow_ = lanes_.size() > 1 && room / lanes_.size() < kLaneColumnsMin + kGap;
    if (is_narrow_) {
      for (const auto& [lane, column] : lanes_) {
        label_columns_ = std::max(label_columns_, short_label(lane).size());
      }
      label_columns_ += kGap;
    }
    const std::size_t shares = is_narrow_ ? 1 : lanes_.size();
    lane_columns_ = std::max<std::size_t>((room - std::min(room, label_columns_)) / shares, 8);
  }

  static LaneKey lane_of(const RowText& row) { return {row.rank, row.thread}; }

  std::string label(const LaneKey& lane) const {
    return has_threads_ ? fmt::format("rank {} thread {}", lane.first, lane.second)
                        : fmt::format("rank {}", lane.first);
  }

  std::string short_label(const LaneKey& lane) const {
    return has_threads_ ? fmt::format("r{}.t{}", lane.first, lane.second)
                        : fmt::format("r{}", lane.first);
  }

  // Where the text of a row starts, counted from the start of the line.
  std::size_t text_column(const RowText& row) const {
    const std::size_t lane = is_narrow_ ? 0 : lanes_.at(lane_of(row));
    return kMarked.size() + clock_columns_ + kGap + label_columns_ + lane * lane_columns_ +
           indent(row);
  }

  std::size_t indent(const RowText& row) const {
    const auto depth = static_cast<std::size_t>(std::max(row.depth, 0));
    return std::min({2 * depth, kIndentMax, lane_columns_ / 2});
  }

  std::string header() const {
    if (rows_.empty()) return "";
    std::string line = fmt::format("{}{:>{}}", kUnmarked, "lc", clock_columns_);
    if (lanes_.size() > 1 && !is_narrow_) {
      line.append(kGap, ' ');
      for (const auto& [lane, column] : lanes_) {
        line += padded(elided(label(lane), lane_columns_ - kGap), lane_columns_);
      }
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return options_.palette.faint(line) + "\n";
  }

  std::string event_line(const RowText& row) const {
    const bool is_marked = !row.marks.empty();
    const Palette& palette = options_.palette;
    const std::string clock = fmt::format("{:>{}}", row.lc, clock_columns_);
    std::string line = is_marked ? palette.bad(kMarked) : std::string(kUnmarked);
    line += palette.faint(clock) + std::string(kGap, ' ');
    if (is_narrow_) line += padded(short_label(lane_of(row)), label_columns_);
    const std::size_t used = kMarked.size() + clock_columns_ + kGap + label_columns_;
    line.append(text_column(row) - used, ' ');
    const bool is_last_lane = is_narrow_ || lanes_.at(lane_of(row)) + 1 == lanes_.size();
    const std::size_t room = lane_columns_ - indent(row) - (is_last_lane ? 0 : kGap);
    const std::string text = elided(row.text, room);
    return line + (is_marked ? palette.bad(text) : text) + "\n";
  }

  // Marks may use all columns right of their event, or of the clock when that is too little.
  std::string mark_lines(const RowText& row, std::string_view mark) const {
    std::size_t start = text_column(row);
    if (start + 2 + kLaneColumnsMin > options_.columns) start = kMarked.size();
    const std::size_t room = std::max<std::size_t>(options_.columns - start - 2, 8);
    std::string lines;
    for (const std::string& part : wrapped_lines(visible(mark), room)) {
      lines.append(start, ' ');
      lines += options_.palette.bad((lines.size() == start ? "^ " : "  ") + part) + "\n";
    }
    return lines;
  }

  const TimelineOptions& options_;
  std::vector<RowText> rows_;
  std::map<LaneKey, std::size_t> lanes_;  // to the number of its column
  std::size_t clock_columns_ = 3;
  std::size_t label_columns_ = 0;
  std::size_t lane_columns_ = 0;  // its gap included
  bool has_threads_ = false;
  bool is_narrow_ = false;
};

}  // namespace

std::string timeline_text(std::vector<TimelineRow> rows, const TimelineOptions& options) {
  return Timeline(std::move(rows), options).text();
}

std::string timeline_text(const std::vector<HookEvent>& events, const NameTable& names,
                          const std::vector<TimelineMark>& marks, const TimelineOptions& options) {
  std::vector<TimelineRow> rows;
  for (const HookEvent& event : events) {
    EventWords words = event_words(event, names);
    rows.push_back({.rank = event.rank,
                    .thread = event.thread,
                    .depth = event.depth,
                    .lc = event.lc,
                    .text = std::move(words.text),
                    .is_detail = words.is_detail});
  }
  for (const TimelineMark& mark : marks) {
    if (mark.event < rows.size()) rows[mark.event].marks.push_back(mark.text);
  }
  return timeline_text(std::move(rows), options);
}

}  // namespace zeroproof

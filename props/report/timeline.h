#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "props/report/palette.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// A bad moment: printed under its event with a caret. `text` begins with the property id.
struct TimelineMark {
  std::size_t event = 0;  // index into the events
  std::string text;
};

// One event as a line of a timeline.
struct TimelineRow {
  std::int32_t rank = 0;
  std::int32_t thread = 0;
  std::int32_t depth = 0;
  std::uint64_t lc = 0;
  std::string text;
  bool is_detail = false;
  std::vector<std::string> marks;
};

struct TimelineOptions {
  std::size_t columns = 100;
  bool shows_details = false;  // also bookkeeping events, which are left out otherwise
  Palette palette;
};

// One line an event, in the order given: logical clock, then the event in the column of its rank
// and thread, indented by the depth of its graph task. Marked events are always shown, start
// with ">>" and are followed by their marks. When the columns would be too narrow, each line names
// its lane instead. Every line ends with '\n' and has at most `columns` characters and its colour.
//
//         lc
//          6      hook p3
//   >>     7      epilogue (automatic)
//                 ^ epilogue.once_after_last_hook: ran after 2 of 4 hooks
std::string timeline_text(const std::vector<HookEvent>& events, const NameTable& names,
                          const std::vector<TimelineMark>& marks = {},
                          const TimelineOptions& options = {});

// The same of rows, e.g. of the ranks of a run, merged.
std::string timeline_text(std::vector<TimelineRow> rows, const TimelineOptions& options);

}  // namespace zeroproof

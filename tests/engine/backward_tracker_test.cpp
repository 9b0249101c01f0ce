// What the tracker says after the events of a row, in letters.
#include "zeroproof/internal/engine/hooks/backward_tracker.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace zeroproof {
namespace {

// "0+" and "0-": graph task 0 begins and ends; "0!": it raised; "0+k": it keeps its graph; "0+x": a
// function transform started it. "f+", "f-": a forward. "b+", "b-", "b!": engine.backward. "p": a
// prologue.
void play(BackwardTracker& tracker, const std::string& event) {
  const bool raised = event.back() == '!';
  if (event == "p") return tracker.run_prologue();
  if (event == "f+") return tracker.begin_forward();
  if (event == "f-") return tracker.end_forward();
  if (event == "b+") return tracker.begin_backward();
  if (event.front() == 'b') return tracker.end_backward(raised);
  const GraphTaskId task{event.front() - '0'};
  if (event[1] != '+') return tracker.end_task(task, raised);
  const char option = event.back();
  tracker.begin_task(task, {.keeps_graph = option == 'k', .is_transform = option == 'x'});
}

std::string letters_of(const BackwardTracker::OpenTask& task) {
  std::string letters = std::to_string(task.id.value);
  if (task.starts_in_forward) letters += 's';
  if (task.is_inside_forward) letters += 'i';
  if (task.has_prologue) letters += 'p';
  if (task.options.keeps_graph) letters += 'k';
  if (task.options.is_transform) letters += 'x';
  return letters + ' ';
}

std::string says(const BackwardTracker& tracker) {
  std::string text;
  for (const BackwardTracker::OpenTask& task : tracker.tasks()) text += letters_of(task);
  if (tracker.has_open_forward()) text += "forward ";
  if (tracker.is_inside_forward()) text += "inside ";
  if (tracker.is_before_prologue()) text += "before ";
  if (tracker.is_outermost_transform()) text += "transform ";
  if (tracker.has_failed_task()) text += "failed ";
  if (tracker.is_backward_running()) text += "running ";
  if (tracker.is_backward_marked()) text += "marked ";
  if (!text.empty()) text.pop_back();
  return text;
}

std::string after(const std::string& events, RunningMark mark = RunningMark::restored) {
  BackwardTracker tracker(mark);
  std::istringstream words(events);
  for (std::string event; words >> event;) play(tracker, event);
  return says(tracker);
}

struct TrackerRow {
  const char* events;
  const char* says;
};

TEST(BackwardTracker, Knows_what_is_open) {
  constexpr TrackerRow kRows[] = {
      {"", ""},
      {"0+", "0 before"},
      {"0+k", "0k before"},
      {"0+ 1+", "0 1 before"},
      {"0+ 1+ 1-", "0 before"},
      {"0+ 0-", ""},
      // Prologues.
      {"0+ p", "0p"},
      {"0+ 1+ p", "0p 1p"},
      {"0+ p 1+", "0p 1p"},
      {"0+ 1+ p 1- 2+", "0p 2p"},
      {"0+ p 0- 1+", "1 before"},
      // Forwards, and backwards inside them.
      {"f+", "forward inside"},
      {"f+ f-", ""},
      {"f+ 0+", "0si forward inside before"},
      {"f+ 0+ 1+", "0si 1i forward inside before"},
      {"f+ f+ f- 0+", "0si forward inside before"},
      {"0+ f+ 1+", "0 1si forward inside before"},
      {"0+ f+", "0 forward before"},
      {"0+ f+ 1+ 1- f- 2+", "0 2 before"},
      // A transform's task between a forward and what it starts.
      {"0+x", "0x before transform"},
      {"f+ 0+x 1+", "0six 1si forward inside before transform"},
      {"0+x f+ 1+", "0x 1si forward inside before transform"},
      {"0+x 0- 1+ 2+x", "1 2x before"},
      {"0+ 1+x 1- f+ 2+", "0 2si forward inside before"},
  };
  for (const TrackerRow& row : kRows) EXPECT_EQ(after(row.events), row.says) << row.events;
}

TEST(BackwardTracker, Remembers_a_failure_until_the_next_outermost_task) {
  constexpr TrackerRow kRows[] = {
      {"0+ 0!", "failed"},      {"0+ 1+ 1! 2+ 2-", "0 before failed"}, {"0+ 1+ 1! 0-", "failed"},
      {"0+ 0! 1+", "1 before"}, {"0+x 0!", "transform failed"},
  };
  for (const TrackerRow& row : kRows) EXPECT_EQ(after(row.events), row.says) << row.events;
}

struct MarkRow {
  const char* events;
  const char* left_by_exception;
  const char* restored;
  const char* counted;
};

TEST(BackwardTracker, Marks_a_running_backward_as_the_release_does) {
  constexpr const char* kBoth = "running marked";
  constexpr MarkRow kRows[] = {
      {"b+", kBoth, kBoth, kBoth},        {"b+ b-", "", "", ""},
      {"b+ b!", kBoth, "", ""},           {"b+ b+ b-", "running", "running", kBoth},
      {"b+ b+ b- b-", "", "", ""},        {"b+ b+ b!", kBoth, "running", kBoth},
      {"b+ b! b+ b-", "running", "", ""},
  };
  for (const MarkRow& row : kRows) {
    EXPECT_EQ(after(row.events, RunningMark::left_by_exception), row.left_by_exception)
        << row.events;
    EXPECT_EQ(after(row.events, RunningMark::restored), row.restored) << row.events;
    EXPECT_EQ(after(row.events, RunningMark::counted), row.counted) << row.events;
  }
}

TEST(BackwardTracker, Finds_open_tasks_alone) {
  BackwardTracker tracker;
  tracker.begin_task(GraphTaskId{3}, {.keeps_graph = true});
  tracker.begin_task(GraphTaskId{4});
  ASSERT_NE(tracker.find(GraphTaskId{3}), nullptr);
  EXPECT_TRUE(tracker.find(GraphTaskId{3})->options.keeps_graph);
  EXPECT_EQ(tracker.innermost().id, GraphTaskId{4});
  EXPECT_EQ(tracker.find(GraphTaskId{5}), nullptr);
  EXPECT_EQ(tracker.find(GraphTaskId::none()), nullptr);
}

TEST(BackwardTracker, Refuses_an_end_that_does_not_nest) {
  BackwardTracker tracker;
  EXPECT_ANY_THROW(tracker.end_task(GraphTaskId{0}, false));
  tracker.begin_task(GraphTaskId{0});
  tracker.begin_task(GraphTaskId{1});
  EXPECT_ANY_THROW(tracker.end_task(GraphTaskId{0}, false));
}

std::string bytes_after(const std::string& events) {
  BackwardTracker tracker;
  std::istringstream words(events);
  for (std::string event; words >> event;) play(tracker, event);
  std::string bytes;
  tracker.append_state(bytes);
  return bytes;
}

TEST(BackwardTracker, Appends_what_policies_read) {
  const std::string rows[] = {"",      "0+",    "1+", "f+",       "f+ 0+",
                              "0+ f+", "0+ 1+", "b+", "f+ 0+ 1+", "0+x f+ 1+"};
  for (const std::string& one : rows)
    for (const std::string& other : rows)
      EXPECT_EQ(bytes_after(one) == bytes_after(other), one == other) << one << " / " << other;
  EXPECT_EQ(bytes_after("0+ p 0- f+ f- b+ b-"), bytes_after(""));
}

}  // namespace
}  // namespace zeroproof

#include "props/report/timeline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

#include "props/report/event_words.h"
#include "props/report/text.h"

namespace zeroproof {
namespace {

class EventList {
 public:
  HookEvent& add(EventKind kind, std::string_view name = "", std::string_view param = "") {
    HookEvent event;
    event.kind = kind;
    event.lc = events.size() + 1;
    if (!name.empty()) event.name = names.intern(name);
    if (!param.empty()) event.param = names.intern(param);
    return events.emplace_back(event);
  }

  // Inside graph task `task`, one level deep.
  HookEvent& within(std::int64_t task, EventKind kind, std::string_view name,
                    std::string_view param = "") {
    HookEvent& event = add(kind, name, param);
    event.graph_task = {task};
    event.depth = 1;
    return event;
  }

  std::vector<HookEvent> events;
  NameTable names;
};

// deepspeed-0.18.3 on a reentrant checkpoint: the epilogue runs in the outer task's second hook.
EventList reentrant_story() {
  EventList list;
  list.add(EventKind::engine_call, "engine.forward");
  list.add(EventKind::engine_return, "engine.forward");
  list.add(EventKind::gt_begin).graph_task = {0};
  list.within(0, EventKind::engine_call, "engine.backward_prologue");
  list.within(0, EventKind::bhs_call, "enter_backward");
  list.within(0, EventKind::engine_return, "engine.backward_prologue");
  list.within(0, EventKind::engine_call, "grad_hook", "p4");
  list.within(0, EventKind::engine_return, "grad_hook", "p4");
  list.within(0, EventKind::engine_call, "grad_hook", "p3");
  list.within(0, EventKind::engine_call, "engine.backward_epilogue");
  list.within(0, EventKind::engine_return, "engine.backward_epilogue");
  list.within(0, EventKind::engine_return, "grad_hook", "p3");
  HookEvent& nested = list.within(1, EventKind::gt_begin, "");
  nested.parent_call = 0;
  list.within(1, EventKind::engine_call, "grad_hook", "p2").depth = 2;
  HookEvent& end = list.within(1, EventKind::gt_end, "");
  end.exception = list.names.intern("RuntimeError");
  list.add(EventKind::engine_call, "engine.backward_epilogue");
  return list;
}

TEST(Timeline, Tells_one_backward_and_marks_the_bad_moment) {
  const EventList list = reentrant_story();
  EXPECT_EQ(timeline_text(list.events, list.names,
                          {{9, "P4: the epilogue ran after 2 of 4 hooks; p2 and p1 are lost"}}),
            "    lc\n"
            "     1  engine.forward begins\n"
            "     2  engine.forward ends\n"
            "     3  graph task 0 begins\n"
            "     4    prologue\n"
            "     7    hook p4\n"
            "     9    hook p3\n"
            ">>  10    epilogue (automatic)\n"
            "          ^ P4: the epilogue ran after 2 of 4 hooks; p2 and p1 are lost\n"
            "    13    graph task 1 begins, nested\n"
            "    14      hook p2\n"
            "    15    graph task 1 ends by RuntimeError\n"
            "    16  epilogue (explicit)\n");
}

TEST(Timeline, Shows_bookkeeping_when_asked_or_marked) {
  const EventList list = reentrant_story();
  const std::string marked = timeline_text(list.events, list.names, {{4, "P1: bad"}});
  EXPECT_NE(marked.find(">>   5    manager enter_backward\n"), std::string::npos);
  TimelineOptions options;
  options.shows_details = true;
  const std::string all = timeline_text(list.events, list.names, {}, options);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 17);
  EXPECT_NE(all.find("     8    hook p4 ends\n"), std::string::npos);
}

EventList two_rank_events() {
  EventList list;
  for (const int rank : {0, 1}) {
    list.within(7, EventKind::engine_call, "grad_hook", rank == 0 ? "a" : "b").rank = rank;
  }
  HookEvent& issue = list.add(EventKind::coll_issue, "all_reduce");
  issue.rank = 1;
  issue.index = 3;
  return list;
}

TEST(Timeline, Gives_each_rank_a_column_when_there_is_room) {
  const EventList list = two_rank_events();
  TimelineOptions options;
  options.columns = 70;
  EXPECT_EQ(timeline_text(list.events, list.names, {{2, "C1: other op"}}, options),
            "    lc  rank 0                         rank 1\n"
            "     1    hook a\n"
            "     2                                   hook b\n"
            ">>   3                                 all_reduce issued (number 3)\n"
            "                                       ^ C1: other op\n");
}

TEST(Timeline, Names_the_rank_in_each_line_when_there_is_not) {
  const EventList list = two_rank_events();
  TimelineOptions options;
  options.columns = 40;
  EXPECT_EQ(timeline_text(list.events, list.names, {}, options),
            "    lc\n"
            "     1  r0    hook a\n"
            "     2  r1    hook b\n"
            "     3  r1  all_reduce issued (number 3)\n");
}

TEST(Timeline, Is_empty_for_no_events) {
  EXPECT_EQ(timeline_text({}, NameTable()), "");
}

RC_GTEST_PROP(Timeline, Stays_within_its_width_and_free_of_control_characters, ()) {
  EventList list;
  const auto count = *rc::gen::inRange<std::size_t>(0, 12);
  for (std::size_t i = 0; i < count; ++i) {
    const auto kind =
        static_cast<EventKind>(*rc::gen::inRange(0, static_cast<int>(EventKind::mark) + 1));
    HookEvent& event =
        list.add(kind, *rc::gen::arbitrary<std::string>(), *rc::gen::arbitrary<std::string>());
    event.rank = *rc::gen::inRange(0, 4);
    event.thread = *rc::gen::inRange(0, 2);
    event.depth = *rc::gen::inRange(-1, 30);
    event.graph_task = {*rc::gen::inRange(-1, 3)};
  }
  std::vector<TimelineMark> marks;
  if (count > 0) marks.push_back({count / 2, *rc::gen::arbitrary<std::string>()});
  TimelineOptions options;
  options.columns = *rc::gen::inRange<std::size_t>(40, 160);
  options.shows_details = *rc::gen::arbitrary<bool>();
  std::istringstream text(timeline_text(list.events, list.names, marks, options));
  std::size_t events_shown = 0;
  for (std::string line; std::getline(text, line);) {
    RC_ASSERT(display_width(line) <= options.columns);
    RC_ASSERT(std::none_of(line.begin(), line.end(), [](char c) { return c >= 0 && c < 0x20; }));
    ++events_shown;
  }
  if (options.shows_details) RC_ASSERT(events_shown >= count);
}

TEST(EventWords, Has_words_for_every_kind) {
  for (int kind = 1; kind <= static_cast<int>(EventKind::mark); ++kind) {
    HookEvent event;
    event.kind = static_cast<EventKind>(kind);
    EXPECT_NE(event_words(event, NameTable()).text, "event of an unknown kind")
        << event_kind_name(event.kind);
  }
}

TEST(Text, Elides_pads_and_wraps_by_columns_not_bytes) {
  EXPECT_EQ(elided("größenwahn", 9), "größen...");
  EXPECT_EQ(padded("größe", 7), "größe  ");
  EXPECT_EQ(wrapped_lines("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped_lines("abcdefgh", 3), (std::vector<std::string>{"abc", "def", "gh"}));
}

TerminalFacts facts(bool is_terminal) {
  TerminalFacts result;
  result.is_terminal = is_terminal;
  return result;
}

TEST(Palette, Follows_flag_then_variables_then_terminal) {
  EXPECT_TRUE(wants_color(ColorChoice::automatic, facts(true)));
  EXPECT_FALSE(wants_color(ColorChoice::automatic, facts(false)));

  TerminalFacts no_color = facts(true);
  no_color.no_color = "1";
  no_color.clicolor_force = "1";
  EXPECT_FALSE(wants_color(ColorChoice::automatic, no_color));
  EXPECT_TRUE(wants_color(ColorChoice::always, no_color));
  no_color.no_color = "";
  EXPECT_TRUE(wants_color(ColorChoice::automatic, no_color));

  TerminalFacts forced = facts(false);
  forced.clicolor_force = "1";
  forced.clicolor = "0";
  EXPECT_TRUE(wants_color(ColorChoice::automatic, forced));
  EXPECT_FALSE(wants_color(ColorChoice::never, forced));
  forced.clicolor_force = "0";
  EXPECT_FALSE(wants_color(ColorChoice::automatic, forced));

  TerminalFacts off = facts(true);
  off.clicolor = "0";
  EXPECT_FALSE(wants_color(ColorChoice::automatic, off));
  TerminalFacts dumb = facts(true);
  dumb.term = "dumb";
  EXPECT_FALSE(wants_color(ColorChoice::automatic, dumb));
}

TEST(Palette, Dresses_text_only_when_it_may) {
  EXPECT_EQ(Palette(true).bad("x"), "\x1b[1;31mx\x1b[0m");
  EXPECT_EQ(Palette(false).bad("x"), "x");
  EXPECT_EQ(color_choice_of("auto"), ColorChoice::automatic);
  EXPECT_EQ(color_choice_of("yes"), std::nullopt);
}

}  // namespace
}  // namespace zeroproof

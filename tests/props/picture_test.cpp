#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "props/exploration.h"
#include "props/report/html.h"
#include "props/report/picture/picture_builder.h"
#include "props/report/picture/pictures.h"
#include "props/report/svg.h"
#include "props/report/web_files.h"

namespace zeroproof {
namespace {

std::string bundled(const std::string& name) {
  return ZP_SOURCE_DIR "/tests/traces/" + name;
}

const std::string kDeepSpeed = "deepspeed-edaa7221-cuda/";

Picture picture_of(const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back(bundled(name));
  auto picture = trace_picture(paths, {}, {});
  EXPECT_TRUE(picture) << picture.error().text;
  return std::move(*picture);
}

Picture two_ranks() {
  return picture_of(
      {kDeepSpeed + "mlp__z3_fp32_w2_r0.jsonl.gz", kDeepSpeed + "mlp__z3_fp32_w2_r1.jsonl.gz"});
}

// By track and row: places from begin to end, in order of their begins.
std::map<std::pair<std::uint32_t, std::uint32_t>, std::multimap<std::uint64_t, std::uint64_t>>
shapes_of(const Picture& picture) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::multimap<std::uint64_t, std::uint64_t>>
      rows;
  for (const PictureBar& bar : picture.bars) {
    rows[{bar.track, bar.row}].emplace(picture.events[bar.begin].tick,
                                       picture.events[bar.end].tick);
  }
  for (const PictureEvent& event : picture.events) {
    if (event.is_moment) rows[{event.track, event.row}].emplace(event.tick, event.tick);
  }
  return rows;
}

void expect_sound(const Picture& picture) {
  std::set<std::uint32_t> drawn;
  for (const PictureBar& bar : picture.bars) {
    ASSERT_LE(picture.events[bar.begin].tick, picture.events[bar.end].tick);
    ASSERT_LT(bar.row, picture.tracks[bar.track].rows);
    drawn.insert({bar.begin, bar.end});
  }
  for (std::uint32_t i = 0; i < picture.events.size(); ++i) {
    ASSERT_TRUE(picture.events[i].is_moment || drawn.contains(i)) << "lc " << picture.events[i].lc;
  }
  for (const auto& [row, shapes] : shapes_of(picture)) {
    std::uint64_t free = 0;
    for (const auto& [begin, end] : shapes) {
      ASSERT_GE(begin, free) << picture.tracks[row.first].name << " row " << row.second;
      free = end;
    }
  }
}

TEST(Picture, Draws_every_event_and_nothing_over_another) {
  expect_sound(two_ranks());
  for (const char* name :
       {"pytorch-2.11.0-cpu/P25_ckpt_nonreentrant_tail.jsonl.gz",  // a recompute that stops early
        "pytorch-2.11.0-cpu/P47_exception_in_callback.jsonl.gz",   // a bracket without an end
        "deepspeed-edaa7221-cuda/exception_recovery__z3_fp32_w1_r0.jsonl.gz",
        "deepspeed-edaa7221-cuda/two_losses_retain__z1_fp32_w1_r0.jsonl.gz"}) {
    SCOPED_TRACE(name);
    expect_sound(picture_of({name}));
  }
}

TEST(Picture, Puts_a_completion_behind_every_issue_of_its_collective) {
  const Picture picture = two_ranks();
  std::map<std::int64_t, std::vector<const PictureBar*>> peers;
  for (const PictureBar& bar : picture.bars) {
    if (bar.peer >= 0) peers[bar.peer].push_back(&bar);
  }
  ASSERT_GT(peers.size(), 20U);
  for (const auto& [peer, bars] : peers) {
    ASSERT_EQ(bars.size(), 2U) << "one a rank";
    for (const PictureBar* one : bars) {
      for (const PictureBar* other : bars) {
        EXPECT_LT(picture.events[one->begin].tick, picture.events[other->end].tick);
      }
    }
  }
}

// Collectives of two ranks, event by event.
class TwoRanks {
 public:
  TwoRanks() : builder_(names_) {
    header_.world = 2;
    event_.group = names_.intern("world");
    event_.name = names_.intern("all_reduce");
  }

  void begin(std::int32_t rank) {
    builder_.begin_source(header_, "r");
    event_.rank = rank;
    event_.lc = 0;
  }

  void add(EventKind kind, std::int64_t number) {
    event_.kind = kind;
    event_.index = number;
    ++event_.lc;
    builder_.add(event_);
  }

  Picture finish() { return builder_.finish(); }

 private:
  NameTable names_;
  PictureBuilder builder_;
  HeaderRecord header_;
  HookEvent event_;
};

TEST(Picture, Lets_a_rank_wait_for_the_one_that_is_late) {
  TwoRanks run;
  run.begin(0);
  run.add(EventKind::coll_issue, 0);
  run.add(EventKind::coll_complete, 0);
  run.begin(1);
  for (int i = 0; i < 5; ++i) run.add(EventKind::mark, -1);
  run.add(EventKind::coll_issue, 0);
  const Picture picture = run.finish();
  EXPECT_EQ(picture.events[0].tick, 1U);
  EXPECT_EQ(picture.events.back().tick, 6U) << "the late issue";
  EXPECT_EQ(picture.events[1].tick, 7U) << "nothing is complete before";
}

TEST(Picture, Goes_on_where_a_rank_did_not_join) {
  TwoRanks run;
  for (const std::int32_t rank : {0, 1}) {  // each waits for what the other never issues first
    run.begin(rank);
    run.add(EventKind::coll_issue, rank);
    run.add(EventKind::coll_complete, rank);
    run.add(EventKind::coll_issue, 1 - rank);
  }
  const Picture picture = run.finish();
  ASSERT_EQ(picture.events.size(), 6U);
  for (const PictureEvent& one : picture.events) EXPECT_GT(one.tick, 0U);
  EXPECT_EQ(picture.bars.back().is_open, true) << "the last collective never completes";
}

TEST(Picture, Marks_the_event_of_a_finding) {
  const std::string path = bundled(kDeepSpeed + "two_losses_retain__z1_fp32_w1_r0.jsonl.gz");
  LocatedFinding finding{.rule = "accumulate.retained_graph_sums", .number = "P28", .text = "lost"};
  finding.file = path;
  finding.rank = 0;
  finding.lc = 226;
  const auto picture = trace_picture({path}, {finding}, {});
  ASSERT_TRUE(picture);
  ASSERT_EQ(picture->findings.size(), 1U);
  ASSERT_GE(picture->findings[0].event, 0);
  EXPECT_EQ(picture->events[static_cast<std::size_t>(picture->findings[0].event)].lc, 226U);
  const auto part = trace_picture({path}, {finding},
                                  {.shows = [](const HookEvent& event) { return event.lc < 100; }});
  EXPECT_EQ(part->findings[0].event, -1) << "its event is not shown";
  EXPECT_FALSE(trace_picture({path}, {}, {.events_max = 700})) << "747 events are too many";
}

// A name may hold anything; a page is broken by the end of a script, a chart by bare markup.
Picture hostile() {
  NameTable names;
  PictureBuilder builder(names);
  HeaderRecord header;
  header.program = "</script><script>alert(1)</script>";
  header.description = "\"quoted\" & 'so' <b>\x01</b>";
  builder.begin_source(header, "a");
  HookEvent event;
  event.kind = EventKind::tensor_hook;
  event.lc = 1;
  event.name = names.intern("</script><img src=x onerror=alert(2)>\n</svg>");
  builder.add(event);
  Picture picture = builder.finish();
  picture.title = header.program;
  picture.note = "<i>note</i> & more";
  picture.findings = {{.event = 0, .number = "<P>", .id = "a<b", .text = "</svg><x y='\"'>"}};
  return picture;
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Html, Holds_no_text_of_a_trace_as_markup) {
  const std::string page = picture_html(hostile());
  EXPECT_EQ(count(page, "</script"), 2U) << "data and program";
  EXPECT_EQ(count(page, "alert("), 1U) << "in the title, escaped";
  EXPECT_NE(page.find("<title>&lt;/script&gt;"), page.npos);
  EXPECT_EQ(count(page, "src="), 0U) << "nothing is loaded";
  EXPECT_EQ(count(page, "href="), 0U);
  EXPECT_EQ(page, picture_html(hostile())) << "equal pictures, equal bytes";
}

TEST(Html, Has_no_file_that_could_end_its_own_element) {
  ASSERT_GE(web_files().size(), 8U);
  for (const WebFile& file : web_files()) {
    EXPECT_EQ(file.text.find("</script"), file.text.npos) << file.name;
    EXPECT_EQ(file.text.find("</style"), file.text.npos) << file.name;
    EXPECT_EQ(file.text.find("http://"), file.text.npos) << file.name;
    EXPECT_EQ(file.text.find("https://"), file.text.npos) << file.name;
  }
}

TEST(Svg, Escapes_what_it_writes) {
  const std::string chart = picture_svg(hostile());
  EXPECT_EQ(count(chart, "</svg>"), 1U);
  EXPECT_NE(chart.find("&lt;/script&gt;"), chart.npos);
  EXPECT_EQ(chart.find("<img"), chart.npos);
  EXPECT_EQ(chart.find('\x01'), chart.npos);
}

// The text of a chart, one element a line, without its styles and its command.
std::string outline(const std::string& chart) {
  const std::size_t begin = chart.find("</style>\n") + 9;
  return chart.substr(begin, chart.find("<text class=\"code\"") - begin);
}

TEST(Svg, Draws_a_finding_as_it_is_printed_here) {
  ExplorationOptions options{.scenario = "S2b", .policy = "deepspeed-0.18.3"};
  const auto report = explore_scenario(options);
  ASSERT_TRUE(report);
  ASSERT_FALSE(report->findings.empty());
  const ExplorationFinding& finding = report->findings.front();
  const std::string drawn = outline(picture_svg(finding_picture(*report, finding)));
  std::ifstream file(ZP_SOURCE_DIR "/tests/props/finding_chart.svg");
  const std::string expected{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(drawn, expected);
  EXPECT_EQ(count(drawn, "<rect class=\"bad-row\""), 1U);
  EXPECT_GT(count(drawn, "<rect class=\"span"), 1U) << "graph tasks, one in the other";
}

TEST(Svg, Shows_of_a_long_run_what_is_around_its_findings) {
  const std::string name = kDeepSpeed + "two_losses_retain__z1_fp32_w1_r0.jsonl.gz";
  Picture picture = picture_of({name});
  EXPECT_EQ(count(picture_svg(picture, {.rows_max = 20}), "<circle"), 20U) << "the beginning";
  picture.findings = {{.event = 225, .number = "P28", .id = "x", .text = "here"}};
  const std::string chart = picture_svg(picture, {.rows_max = 20});
  EXPECT_EQ(count(chart, "events left out"), 2U);
  EXPECT_EQ(count(chart, "bad-ring\" cx"), 1U);
}

}  // namespace
}  // namespace zeroproof

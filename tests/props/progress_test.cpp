#include "props/report/progress.h"

#include <gtest/gtest.h>

#include <tuple>

#include "props/report/text.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kMillisecond_ns = 1'000'000;

// A progress line whose clock and output the test holds.
struct Rig {
  std::int64_t now_ns = 0;
  std::vector<std::string> written;

  ProgressOutput output(bool is_terminal) {
    ProgressOutput out;
    out.write = [this](std::string_view text) { written.emplace_back(text); };
    out.now_ns = [this] { return now_ns; };
    out.facts.is_terminal = is_terminal;
    out.facts.columns = 40;
    return out;
  }

  // Runs 30 s with an update every millisecond; returns how often a view was asked for.
  int run(ProgressLine& progress) {
    int views = 0;
    for (int i = 0; i < 30'000; ++i) {
      now_ns += kMillisecond_ns;
      progress.update([&] {
        ++views;
        return ProgressView{.task = "explore S2", .strategy = "random", .runs = 10};
      });
    }
    return views;
  }
};

TEST(ProgressLine, Says_what_is_known) {
  ProgressView view{.task = "explore S2", .strategy = "exhaustive", .runs = 12'400};
  EXPECT_EQ(ProgressLine::text(view, 4'000 * kMillisecond_ns, false),
            "explore S2  exhaustive  12.4k runs  3.1k/s  0 findings");
  view.runs_max = 50'000;
  view.depth = 41;
  view.states = 9'800;
  view.unique = 950;
  view.sometimes = {5, 6};
  view.findings = 1;
  EXPECT_EQ(ProgressLine::text(view, 4'000 * kMillisecond_ns, false),
            "explore S2  exhaustive  12.4k/50k runs  3.1k/s  depth 41  states 9.8k  unique 950  "
            "sometimes 5/6  1 finding  00:12 left");
  view.seconds_max = 10;
  EXPECT_NE(ProgressLine::text(view, 4'000 * kMillisecond_ns, false).find("00:06 left"),
            std::string::npos);
  EXPECT_NE(ProgressLine::text(view, 4'000 * kMillisecond_ns, true).find("took 00:04"),
            std::string::npos);
}

TEST(ProgressLine, Says_how_long_a_slow_run_takes_and_what_is_left) {
  const std::tuple<std::uint64_t, std::int64_t, std::string> cases[] = {
      {0, 90, "hunt  0/10 cases"},
      {1, 90, "hunt  1/10 cases  90 s each  13:30 left"},
      {4, 90, "hunt  4/10 cases  22 s each  02:15 left"},
      {8, 20, "hunt  8/10 cases  2.5 s each  00:05 left"},
      {9, 9, "hunt  9/10 cases  1/s  00:01 left"},
      {9, 2, "hunt  9/10 cases  4.5/s  00:00 left"}};
  for (const auto& [runs, seconds, text] : cases) {
    const ProgressView view{
        .task = "hunt", .runs = runs, .runs_max = 10, .unit = "cases", .findings = {}};
    EXPECT_EQ(text, ProgressLine::text(view, seconds * 1'000 * kMillisecond_ns, false));
  }
}

TEST(ProgressLine, Shows_the_time_where_no_run_is_counted) {
  const ProgressView search{.task = "explore zero_epilogue", .strategy = "exhaustive", .unit = ""};
  EXPECT_EQ(ProgressLine::text(search, 4'000 * kMillisecond_ns, false),
            "explore zero_epilogue  exhaustive  0 findings  00:04 so far");
  const ProgressView read{.task = "checkpoint verify", .runs = 1'200, .unit = "MB", .findings = {}};
  EXPECT_EQ(ProgressLine::text(read, 4'000 * kMillisecond_ns, false),
            "checkpoint verify  1.2k MB  300/s");
}

TEST(ProgressLine, Redraws_at_most_ten_times_a_second_on_a_terminal) {
  Rig rig;
  ProgressLine progress(ProgressMode::automatic, rig.output(true));
  EXPECT_EQ(rig.run(progress), 300);
  EXPECT_EQ(rig.written.size(), 300u);
  EXPECT_EQ(rig.written.back(),
            "\r" + std::string("explore S2  random  10 runs  3 s eac...") + "\x1b[K");
  progress.finish({.task = "explore S2", .strategy = "random", .runs = 11});
  EXPECT_EQ(rig.written.back(),
            "\rexplore S2  random  11 runs  2.7 s each  0 findings  took 00:30\x1b[K\n");
}

TEST(ProgressLine, Writes_a_line_every_five_seconds_elsewhere) {
  for (const bool is_terminal : {false, true}) {
    Rig rig;
    const auto mode = is_terminal ? ProgressMode::lines : ProgressMode::automatic;
    ProgressLine progress(mode, rig.output(is_terminal));
    EXPECT_EQ(rig.run(progress), 6);
    EXPECT_EQ(rig.written.back(), "explore S2  random  10 runs  2.7 s each  0 findings\n");
  }
}

TEST(ProgressLine, Writes_the_first_line_after_two_seconds) {
  Rig rig;
  ProgressLine progress(ProgressMode::lines, rig.output(false));
  rig.now_ns += 1'999 * kMillisecond_ns;
  progress.update([] { return ProgressView{.task = "replay"}; });
  EXPECT_TRUE(rig.written.empty());
  rig.now_ns += kMillisecond_ns;
  progress.update([] { return ProgressView{.task = "replay"}; });
  EXPECT_EQ(1U, rig.written.size());
}

TEST(ProgressLine, Does_not_redraw_on_a_dumb_terminal) {
  Rig rig;
  ProgressOutput output = rig.output(true);
  output.facts.term = "dumb";
  ProgressLine progress(ProgressMode::automatic, output);
  EXPECT_EQ(rig.run(progress), 6);
}

TEST(ProgressLine, Always_writes_one_last_line_and_nothing_after_it) {
  Rig rig;
  ProgressLine progress(ProgressMode::automatic, rig.output(false));
  const ProgressView view{.task = "explore S2", .strategy = "fifo", .runs = 1};
  progress.finish(view);
  progress.finish(view);
  rig.run(progress);
  EXPECT_EQ(rig.written,
            std::vector<std::string>{"explore S2  fifo  1 run  0 findings  took 00:00\n"});
}

TEST(ProgressLine, Says_what_stays_above_the_progress) {
  for (const bool is_terminal : {false, true}) {
    Rig rig;
    ProgressLine progress(ProgressMode::automatic, rig.output(is_terminal));
    rig.run(progress);
    progress.say("found");
    EXPECT_EQ(rig.written.back(), is_terminal ? "\rfound\x1b[K\n" : "found\n");
    progress.say("found more");
    EXPECT_EQ(rig.written.back(), "found more\n");
  }
}

TEST(ProgressLine, Is_silent_when_told_so) {
  Rig rig;
  ProgressLine progress(ProgressMode::none, rig.output(true));
  EXPECT_EQ(rig.run(progress), 0);
  progress.say("nothing");
  progress.finish({});
  EXPECT_TRUE(rig.written.empty());
}

TEST(Text, Shortens_counts_and_times) {
  const std::pair<std::uint64_t, std::string> counts[] = {{0, "0"},
                                                          {999, "999"},
                                                          {1000, "1k"},
                                                          {12'449, "12.4k"},
                                                          {99'999, "99.9k"},
                                                          {100'000, "100k"},
                                                          {999'999, "999k"},
                                                          {1'000'000, "1M"},
                                                          {3'149'000, "3.1M"},
                                                          {50'000'000'000, "50G"},
                                                          {~std::uint64_t{0}, "18.4E"}};
  for (const auto& [count, text] : counts) EXPECT_EQ(short_count(count), text);
  EXPECT_EQ(clock_text(72), "01:12");
  EXPECT_EQ(clock_text(3723), "1:02:03");
  EXPECT_EQ(clock_text(-5), "00:00");
}

TEST(ProgressMode, Has_three_names) {
  EXPECT_EQ(progress_mode_of("auto"), ProgressMode::automatic);
  EXPECT_EQ(progress_mode_of("line"), ProgressMode::lines);
  EXPECT_EQ(progress_mode_of("none"), ProgressMode::none);
  EXPECT_EQ(progress_mode_of("bar"), std::nullopt);
}

}  // namespace
}  // namespace zeroproof

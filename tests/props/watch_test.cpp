// `zeroproof watch`: what it says of recordings that grow.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "props/replay/trace_paths.h"
#include "props/report/watch_report.h"
#include "sim/trace/reader.h"
#include "tests/props/job_text.h"
#include "tests/props/watched_job.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

using Found = std::pair<std::string, std::vector<std::int32_t>>;  // kind, ranks

std::vector<Found> found_in(const std::vector<std::string>& files) {
  Replay replay({.has_story = true});
  for (const std::string& file : files) EXPECT_TRUE(replay.add(file));
  std::vector<Found> found;
  for (const Diagnosis& one : diagnose(replay.finish())) found.push_back({one.kind, one.ranks});
  return found;
}

bool has(const std::vector<Found>& all, const Diagnosis& one) {
  return std::any_of(all.begin(), all.end(), [&](const Found& found) {
    return found.first == one.kind && std::includes(found.second.begin(), found.second.end(),
                                                    one.ranks.begin(), one.ranks.end());
  });
}

// Files by the word of their run.
std::map<std::string, std::vector<std::string>> runs_of(const std::vector<std::string>& files) {
  std::map<std::string, std::vector<std::string>> runs;
  for (const std::string& file : files) {
    NameTable names;
    const auto reader = TraceReader::open(file, names);
    if (!reader) continue;
    const HeaderRecord& header = reader->header();
    const std::string folder = std::filesystem::path(file).parent_path().string();
    runs[fmt::format("{} {} {} {} {}", folder, header.program, header.stage.value_or(-1),
                     header.dtype, header.world)]
        .push_back(file);
  }
  return runs;
}

std::vector<std::string> bundled(const std::string& folder) {
  return trace_paths(std::string(ZP_SOURCE_DIR "/tests/traces/") + folder).value();
}

struct Pace {
  std::size_t stride = 1;  // lines between two looks
  std::size_t lag = 0;     // of the rank `late`
  std::size_t late = 0;
};

// Findings before the end that the whole files do not have.
std::vector<std::string> false_alarms(const std::vector<std::string>& files, const Pace& pace) {
  const std::vector<Found> whole = found_in(files);
  WatchedJob job = WatchedJob::of_files(files);
  std::vector<std::string> alarms;
  for (std::size_t count = 1; count <= job.lines_max() + pace.lag; count += pace.stride) {
    for (std::size_t rank = 0; rank < job.size(); ++rank)
      job.show(rank, rank == pace.late ? count - std::min(count, pace.lag) : count);
    const std::vector<WatchNews> all = job.tick(0);
    const bool is_over = !all.empty() && all.back().kind == WatchNews::Kind::over;
    for (const WatchNews& news : all)
      if (news.answer && !is_over && !has(whole, *news.answer))
        alarms.push_back(
            fmt::format("{} after {} lines: {}", news.answer->kind, count, news.answer->what));
  }
  return alarms;
}

// Recordings of jobs that ran well and badly, at different paces of their ranks.
TEST(Watch, Tells_nothing_that_the_rest_of_a_recording_takes_back) {
  std::size_t runs = 0;
  for (const char* folder : {"recorder-torch2.11.0-cpu", "deepspeed-edaa7221-cuda"})
    for (const auto& [run, files] : runs_of(bundled(folder))) {
      ++runs;
      for (const Pace& pace : {Pace{.stride = 41}, Pace{.stride = 67, .lag = 90, .late = 0}})
        for (const std::string& alarm : false_alarms(files, pace))
          ADD_FAILURE() << run << ": " << alarm;
    }
  EXPECT_GT(runs, 40U);
}

// At every line, with each rank ahead of the other by up to some collectives.
TEST(Watch, Tells_nothing_too_early_at_any_line_of_a_small_recording) {
  for (const char* program : {"skipped_collective", "ddp_mlp", "fsdp2_mlp"})
    for (const auto& [run, files] : runs_of(bundled("recorder-torch2.11.0-cpu"))) {
      if (run.find(program) == std::string::npos) continue;
      for (const Pace& pace : {Pace{}, Pace{.lag = 25, .late = 0}, Pace{.lag = 25, .late = 1}})
        for (const std::string& alarm : false_alarms(files, pace))
          ADD_FAILURE() << run << ": " << alarm;
    }
}

// The findings at the end of a recording are those of replay.
TEST(Watch, Ends_with_the_diagnosis_of_replay) {
  for (const auto& [run, files] : runs_of(bundled("recorder-torch2.11.0-cpu"))) {
    WatchedJob job = WatchedJob::of_files(files);
    std::set<std::string> told;
    job.show_all(job.lines_max());
    for (const std::int64_t now : {0, 1})
      for (const WatchNews& news : job.tick(now * kSecond))
        if (news.answer) told.insert(news.answer->kind);
    std::set<std::string> expected;
    bool has_defect = false;
    for (const Diagnosis& one : diagnosis_of(files)) {
      expected.insert(one.kind);
      has_defect = has_defect || one.gravity == Gravity::defect;
    }
    EXPECT_EQ(told, expected) << run;
    EXPECT_EQ(job.watch().has_defect(), has_defect) << run;
    EXPECT_TRUE(job.watch().is_over()) << run;
  }
}

std::vector<WatchNews> of_kind(const std::vector<WatchNews>& all, WatchNews::Kind kind) {
  std::vector<WatchNews> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some),
               [&](const WatchNews& news) { return news.kind == kind; });
  return some;
}

// The recording of a job in which rank 1 left out a collective, up to where rank 0 hangs.
TEST(Watch, Tells_a_recorded_hang_within_the_seconds_that_were_asked_for) {
  std::vector<std::vector<std::string>> ranks;
  for (const char* rank : {"r0", "r1"})
    ranks.push_back(lines_of_trace(
        fmt::format("{}/tests/traces/recorder-torch2.11.0-cpu/skipped_collective__w2_{}.jsonl.gz",
                    ZP_SOURCE_DIR, rank)));
  ranks[0].resize(ranks[0].size() - 3);  // the time-out, and the end after it
  ranks[1].pop_back();
  WatchedJob job(ranks, {.hang_after_ns = 20 * kSecond, .wait_after_ns = 5 * kSecond});
  job.show_all(job.lines_max());
  EXPECT_TRUE(of_kind(job.tick(0), WatchNews::Kind::finding).empty());
  EXPECT_TRUE(of_kind(job.tick(4 * kSecond), WatchNews::Kind::waits).empty());
  const auto waits = of_kind(job.tick(5 * kSecond), WatchNews::Kind::waits);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].wait.text, "all_reduce number 11 of group world (64 bytes)");
  EXPECT_EQ(waits[0].ranks, std::vector{0});
  ASSERT_EQ(waits[0].absent.size(), 1U);
  EXPECT_EQ(waits[0].absent[0].rank, 1);
  EXPECT_EQ(waits[0].absent[0].last.lc, 135U);
  EXPECT_TRUE(job.tick(19 * kSecond).empty());
  EXPECT_FALSE(job.watch().has_defect());
  const auto found = of_kind(job.tick(20 * kSecond), WatchNews::Kind::finding);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].is_hang);
  EXPECT_EQ(found[0].answer->kind, "collective.missing");
  EXPECT_EQ(found[0].answer->ranks, std::vector{1});
  EXPECT_EQ(found[0].answer->parameter, "l2.weight");
  EXPECT_TRUE(job.watch().has_defect());
  EXPECT_TRUE(job.tick(21 * kSecond).empty());  // reported once
}

// Two ranks that meet in collectives.
std::vector<std::string> meeting(int rank, int complete, bool is_in_next, bool has_end = false) {
  TraceText trace(rank, 2);
  trace.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
  trace.param("a");
  for (int at = 0; at < complete; ++at) trace.collective(at, "all_reduce", 16, "a");
  if (is_in_next) trace.collective(complete, "all_reduce", 16, "a", false);
  const std::string path = written({trace.text(has_end)}).front();
  return lines_of_trace(path);
}

TEST(Watch, A_rank_that_comes_late_ends_the_wait_and_leaves_no_finding) {
  auto late = meeting(1, 3, false, true);
  WatchedJob job({meeting(0, 3, false, true), late},
                 {.hang_after_ns = 10 * kSecond, .wait_after_ns = 2 * kSecond});
  const std::size_t in_third = 3 + 2 * 2 + 1;  // header, group, param, two pairs, one issue
  job.show(0, in_third);
  job.show(1, in_third - 1);
  (void)job.tick(0);
  const auto hang = of_kind(job.tick(10 * kSecond), WatchNews::Kind::finding);
  ASSERT_EQ(hang.size(), 1U);
  EXPECT_EQ(hang[0].answer->kind, "collective.missing");
  EXPECT_TRUE(job.watch().has_defect());
  job.show_all(job.lines_max());
  EXPECT_EQ(of_kind(job.tick(12 * kSecond), WatchNews::Kind::goes_on).size(), 0U);
  (void)job.tick(13 * kSecond);
  EXPECT_TRUE(job.watch().is_over());
  EXPECT_FALSE(job.watch().has_defect());
}

TEST(Watch, Ranks_that_are_all_in_one_collective_are_stuck_together) {
  WatchedJob job({meeting(0, 2, true), meeting(1, 2, true)}, {.hang_after_ns = 10 * kSecond});
  job.show_all(job.lines_max());
  (void)job.tick(0);
  const auto found = of_kind(job.tick(10 * kSecond), WatchNews::Kind::finding);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].answer->kind, "collective.stuck_together");
}

// A rank that computes without an end in sight is no hang as long as it records events.
TEST(WatchText, Of_a_hang_fits_the_columns_whatever_its_colour) {
  WatchNews news{.kind = WatchNews::Kind::finding, .at_ns = 24 * kSecond, .quiet_ns = 10 * kSecond};
  news.wait = {
      .for_ranks = {1}, .text = "all_reduce number 14 of group world (16 bytes)", .ranks = {0}};
  news.answer = Diagnosis{.kind = "collective.missing"};
  news.is_hang = true;
  for (const bool has_color : {false, true}) {
    const std::string text = watch_text(news, 80, Palette(has_color));
    const std::string word = Palette(has_color).bad("hang");
    EXPECT_EQ(0U, text.find("00:24    " + word +
                            ": rank 0 waits for rank 1 in all_reduce number 14 of group world\n"
                            "         (16 bytes); no event for 10 s\n"))
        << text;
  }
}

TEST(Watch, A_rank_that_still_records_events_is_waited_for) {
  auto busy = meeting(1, 2, false);
  const std::size_t begun = busy.size();
  for (int at = 0; at < 40; ++at)
    busy.push_back(
        fmt::format("{{\"rec\":\"ev\",\"lc\":{},\"t\":{},\"r\":1,\"th\":0,\"k\":\"mark\","
                    "\"gt\":-1,\"d\":0,\"label\":\"x\"}}\n",
                    at + 100, at + 100));
  WatchedJob job({meeting(0, 2, true), busy}, {.hang_after_ns = 10 * kSecond});
  job.show(0, 100);
  job.show(1, begun);
  for (int at = 0; at < 40; ++at) {
    job.show(1, begun + static_cast<std::size_t>(at));
    EXPECT_TRUE(of_kind(job.tick(at * 3 * kSecond), WatchNews::Kind::finding).empty()) << at;
  }
  EXPECT_EQ(of_kind(job.tick(200 * kSecond), WatchNews::Kind::finding).size(), 1U);
}

}  // namespace
}  // namespace zeroproof

// Hundreds of ranks: what is kept of each, how often files are read again, how much is printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "props/report/diagnosis_report.h"
#include "props/report/replay_text.h"
#include "props/report/text.h"
#include "tests/props/trace_text.h"

namespace zeroproof {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRanks = 512;
constexpr int kOdd = 17;
constexpr std::size_t kRankBytesMax =
    8192;  // docs/reference/diagnosis.md, for this many groups and events

struct Fault {
  int left_out = -1;  // number of the collective that the odd rank leaves out
  int stops_at = -1;  // ... before which it ends; the others wait in it
};

std::string rank_text(int rank, const std::string& ranks, const Fault& fault) {
  TraceText trace(rank, kRanks);
  trace.record(fmt::format(R"({{"rec":"group","name":"world","ranks":[{}]}})", ranks));
  for (int param = 0; param < 4; ++param) trace.param(fmt::format("layers.{}.weight", param));
  int number = 0;
  for (int at = 0; at < 40; ++at) {
    const std::string param = fmt::format("layers.{}.weight", at % 4);
    if (rank == kOdd && at == fault.left_out) continue;
    if (at == fault.stops_at) {
      if (rank == kOdd) return trace.text();
      return trace.collective(number, "all_reduce", 16, param, false).text(false);
    }
    trace.accumulate(-1, param);
    trace.collective(number++, "all_reduce", 16, param);
  }
  return trace.text();
}

ReplayReport replayed_ranks(const Fault& fault, int missing_rank = -1) {
  std::string ranks = "0";
  for (int rank = 1; rank < kRanks; ++rank) ranks += fmt::format(",{}", rank);
  Replay replay({.has_story = true});
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == missing_rank) continue;
    const std::string path = scratch_path(fmt::format("rank{}.jsonl", rank));
    std::ofstream(path, std::ios::binary) << rank_text(rank, ranks, fault);
    (void)replay.add(path);
  }
  return replay.finish();
}

std::size_t lines_of(const ReplayReport& report, const std::vector<Diagnosis>& diagnosis) {
  return line_count(replay_text(report, 80, Palette())) +
         line_count(diagnosis_text(diagnosis, 80, 60, Palette()));
}

TEST(ManyRanks, That_agree_are_read_once_and_told_in_a_few_lines) {
  const ReplayReport report = replayed_ranks({});
  EXPECT_EQ(std::size_t{kRanks}, report.summary().ok);
  EXPECT_LE(report.digest_bytes / kRanks, kRankBytesMax);
  ASSERT_EQ(1U, report.runs.size());
  EXPECT_EQ(0U, report.runs[0].pairs_read);
  EXPECT_THAT(report.runs[0].checked, Contains(HasSubstr("40 collectives a rank in 1 group")));
  const std::string text = replay_text(report, 80, Palette());
  EXPECT_THAT(text, HasSubstr("512 traces of job, ranks 0–511"));
  EXPECT_LE(line_count(text), 8U);
}

TEST(ManyRanks, One_that_leaves_one_out_is_named_once) {
  const ReplayReport report = replayed_ranks({.left_out = 21});
  EXPECT_EQ(1U, report.runs.at(0).pairs_read);
  const auto all = diagnose(report);
  ASSERT_THAT(kinds_of(all), ElementsAre("collective.missing"));
  EXPECT_THAT(all[0].ranks, ElementsAre(kOdd));
  EXPECT_EQ("layers.1.weight", all[0].parameter);
  EXPECT_THAT(all[0].what, HasSubstr("ranks 0–16, 18–511 issued as number 21"));
  EXPECT_LE(lines_of(report, all), 60U);
}

TEST(ManyRanks, That_wait_for_one_are_told_as_a_set) {
  const ReplayReport report = replayed_ranks({.stops_at = 30});
  const auto all = diagnose(report);
  ASSERT_THAT(kinds_of(all), ElementsAre("collective.missing", "process.ended_early"));
  EXPECT_THAT(all[0].ranks, ElementsAre(kOdd));
  ASSERT_EQ(1U, all[0].waits.size());
  EXPECT_EQ(std::size_t{kRanks - 1}, all[0].waits[0].ranks.size());
  EXPECT_THAT(all[0].waits[0].for_ranks, ElementsAre(kOdd));
  EXPECT_LE(lines_of(report, all), 90U);
}

// Whatever was found, the page has an end.
TEST(ManyRanks, Are_told_in_a_limited_number_of_lines) {
  ReplayReport report = replayed_ranks({});
  for (std::size_t at = 0; at < report.traces.size(); ++at)
    report.traces[at].program = fmt::format("program {}", at);
  EXPECT_LE(line_count(replay_text(report, 80, Palette())), kReplayTextLines);
  std::vector<Diagnosis> all;
  for (int at = 0; at < 300; ++at) {
    all.push_back({.kind = fmt::format("kind.{}", at), .what = std::string(3000, 'x')});
    for (int rank = 0; rank < 100; ++rank) {
      all.back().order.push_back({rank, 1, "a moment", false});
      all.back().waits.push_back({.rank = rank, .for_ranks = {0}, .text = "a collective"});
    }
  }
  const std::string text = diagnosis_text(all, 80, 60, Palette());
  EXPECT_LE(line_count(text), 60U);
  EXPECT_THAT(text, HasSubstr("kind.0"));
}

TEST(ManyRanks, Without_the_file_of_one_are_told_so) {
  const auto all = diagnose(replayed_ranks({}, kOdd));
  ASSERT_THAT(kinds_of(all), ElementsAre("rank.no_file"));
  EXPECT_THAT(all[0].what, HasSubstr("of 512 ranks 1 left no file: 17"));
}

}  // namespace
}  // namespace zeroproof

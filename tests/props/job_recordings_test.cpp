// Recordings of real jobs: a healthy one has no defect, a mistaken one is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "props/replay/diagnose.h"
#include "props/replay/replay.h"

namespace zeroproof {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

const std::string kJobFolder = ZP_SOURCE_DIR "/tests/data/jobs/";

nlohmann::json expected() {
  std::ifstream file(kJobFolder + "expected.json");
  return nlohmann::json::parse(file);
}

struct Judged {
  ReplayReport report;
  std::vector<std::string> defects;
};

Judged judged(const std::string& job) {
  Replay replay({.has_story = true});
  for (const char* rank : {"_r0", "_r1"}) {
    const std::string path = kJobFolder + job + rank + ".jsonl.gz";
    if (std::filesystem::exists(path)) (void)replay.add(path);
  }
  Judged all{.report = replay.finish()};
  const std::vector<Diagnosis> diagnosis = diagnose(all.report);
  mark_defects(all.report, diagnosis);
  for (const Diagnosis& one : diagnosis)
    if (one.gravity == Gravity::defect) all.defects.push_back(one.kind);
  return all;
}

TEST(JobRecordings, Healthy_jobs_have_no_defect) {
  const nlohmann::json jobs = expected().at("healthy");
  ASSERT_FALSE(jobs.empty());
  for (const auto& [job, what] : jobs.items()) {
    SCOPED_TRACE(job + ": " + what.get<std::string>());
    const Judged all = judged(job);
    ASSERT_FALSE(all.report.traces.empty());
    EXPECT_THAT(all.defects, IsEmpty());
    EXPECT_EQ(all.report.summary().ok, all.report.traces.size());
  }
}

TEST(JobRecordings, Mistakes_are_named_and_their_files_do_not_agree) {
  const nlohmann::json jobs = expected().at("mistakes");
  ASSERT_FALSE(jobs.empty());
  for (const auto& [job, kind] : jobs.items()) {
    SCOPED_TRACE(job);
    const Judged all = judged(job);
    EXPECT_THAT(all.defects, Contains(kind.get<std::string>()));
    EXPECT_EQ(all.defects.size(), 1U);
    EXPECT_EQ(all.report.summary().mismatched, all.report.traces.size());
  }
}

TEST(JobRecordings, What_was_checked_is_counted) {
  const Judged all = judged("ddp_right");
  const TraceReplay& trace = all.report.traces.at(0);
  const CheckedWork& checked = trace.story->checked;
  EXPECT_EQ(trace.counts.steps, 4U);
  EXPECT_EQ(trace.counts.backwards, 4U);
  EXPECT_THAT(checked.rules, Contains("reduction before each step"));
  EXPECT_THAT(checked.left_out, IsEmpty());
}

}  // namespace
}  // namespace zeroproof

#include "props/conform/conform.h"

#include <gtest/gtest.h>

#include <set>

#include "props/conform/program.h"
#include "props/replay/trace_paths.h"
#include "props/report/conform_report.h"

namespace zeroproof {
namespace {

ConformReport conform_folder(const std::string& folder, const ConformOptions& options) {
  ConformReport report;
  const auto paths = trace_paths(std::string(ZP_SOURCE_DIR "/tests/traces/") + folder);
  EXPECT_TRUE(paths);
  for (const std::string& path : *paths) {
    const auto outcome = conform(path, options);
    EXPECT_TRUE(outcome) << outcome.error().text;
    if (outcome) report.outcomes.push_back(*outcome);
  }
  return report;
}

void expect_no_mismatch(const ConformReport& report) {
  EXPECT_EQ(report.outcomes.size(),
            report.count(ConformStatus::agreed) + report.count(ConformStatus::unknown));
  EXPECT_LE(39U, report.count(ConformStatus::agreed));
  for (const ConformOutcome& outcome : report.outcomes) {
    const bool is_fine = outcome.detail.empty() || outcome.status == ConformStatus::unknown;
    EXPECT_TRUE(is_fine) << outcome.program << ": " << outcome.detail;
  }
}

TEST(Conform, Agrees_with_the_recorded_cpu_programs_it_has) {
  expect_no_mismatch(conform_folder("pytorch-2.11.0-cpu", {}));
}

TEST(Conform, Agrees_with_the_recorded_cuda_programs_it_has) {
  expect_no_mismatch(conform_folder("pytorch-2.11.0-cuda", {}));
}

TEST(Conform, In_float32_agrees_with_the_float64_records) {
  const ConformReport report = conform_folder("pytorch-2.11.0-cpu", {DType::float32, 1e-5});
  expect_no_mismatch(report);
  double worst = 0.0;
  for (const ConformOutcome& outcome : report.outcomes) worst = std::max(worst, outcome.worst);
  EXPECT_LT(1e-9, worst) << "it did not compute in float32";
}

TEST(Conform, Calls_a_tensor_that_is_off_a_value_mismatch) {
  const std::string path = ZP_SOURCE_DIR "/tests/traces/pytorch-2.11.0-cpu/P01_mlp2.jsonl.gz";
  const auto outcome = conform(path, {DType::float64, 1e-20});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(ConformStatus::value_mismatch, outcome->status);
  EXPECT_NE(std::string::npos, outcome->detail.find("off by")) << outcome->detail;
}

TEST(Conform, Cannot_read_what_is_no_trace) {
  const auto outcome = conform(ZP_SOURCE_DIR "/README.md", {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(ErrorCode::unreadable, outcome.error().code);
}

TEST(Conform, Reports_programs_that_are_not_ported_as_unknown_and_skipped) {
  ConformReport report;
  report.outcomes.push_back({.path = "x", .program = "P00_none", .detail = "not ported"});
  EXPECT_NE(std::string::npos, conform_text(report, {}).find("inconclusive"));
  EXPECT_NE(std::string::npos, conform_json(report).find("\"unknown\": 1"));
  EXPECT_EQ(JUnitOutcome::skipped, conform_cases(report).at(0).outcome);
}

TEST(ConformPrograms, Have_one_port_each) {
  std::set<std::string_view> names;
  for (const ConformProgram& program : conform_programs()) {
    EXPECT_TRUE(names.insert(program.name).second) << program.name;
    EXPECT_EQ(&program, find_program(program.name));
  }
  EXPECT_GE(kProgramsSpecified, static_cast<int>(names.size()));
}

}  // namespace
}  // namespace zeroproof

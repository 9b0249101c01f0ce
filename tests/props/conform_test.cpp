#include "props/conform/conform.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "props/conform/program.h"
#include "props/conform/recording.h"
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

// How many programs each folder has. One needs an accelerator; of the 14 about what PyTorch added,
// 2.11 has four.
struct Recorded {
  const char* folder;
  std::size_t programs;
};
constexpr Recorded kOnCpu = {"pytorch-2.11.0-cpu", 101};
constexpr Recorded kOnCuda = {"pytorch-2.11.0-cuda", 98};
constexpr Recorded kNewer = {"pytorch-2.15.0-cpu", kProgramsSpecified - 1};

void expect_agreement(const ConformReport& report, std::size_t programs) {
  EXPECT_EQ(programs, report.outcomes.size());
  EXPECT_EQ(programs, report.count(ConformStatus::agreed));
  for (const ConformOutcome& outcome : report.outcomes)
    EXPECT_TRUE(outcome.detail.empty()) << outcome.program << ": " << outcome.detail;
}

TEST(Conform, Agrees_with_every_program_recorded_on_the_cpu) {
  for (const Recorded& recorded : {kOnCpu, kNewer})
    expect_agreement(conform_folder(recorded.folder, {}), recorded.programs);
}

Recording recording_of(const std::string& file) {
  auto recorded = read_recording(std::string(ZP_SOURCE_DIR "/tests/traces/") + file);
  EXPECT_TRUE(recorded);
  return *recorded;
}

// Each row: a program, and a release that does not behave as the recorded one did.
TEST(Conform, Runs_a_program_as_the_recorded_release_of_PyTorch_does) {
  struct Row {
    const char* file;
    const char* other_release;
  };
  constexpr Row kRows[] = {
      {"pytorch-2.15.0-cpu/P03_mlp2_3d.jsonl.gz", "2.14.0"},
      {"pytorch-2.11.0-cpu/P03_mlp2_3d.jsonl.gz", "2.15.0"},
  };
  for (const Row& row : kRows) {
    Recording recorded = recording_of(row.file);
    ASSERT_EQ(ConformStatus::agreed, conform(recorded, row.file, {}).status);
    recorded.torch = *TorchRelease::parse(row.other_release);
    const ConformOutcome outcome = conform(recorded, row.file, {});
    EXPECT_EQ(ConformStatus::order_mismatch, outcome.status) << row.file;
    EXPECT_NE(std::string::npos, outcome.detail.find("UnsafeViewBackward0")) << outcome.detail;
  }
}

TEST(Conform, Agrees_with_every_program_recorded_on_cuda) {
  const ConformReport report = conform_folder(kOnCuda.folder, {});
  expect_agreement(report, kOnCuda.programs);
  std::set<std::string> races;
  for (const ConformOutcome& outcome : report.outcomes)
    if (outcome.is_race) races.insert(outcome.program);
  const std::set<std::string> several_roots = {"P11_multi_root", "P93_sequence_numbers"};
  EXPECT_EQ(several_roots, races);
}

TEST(Conform, In_float32_agrees_with_the_float64_records) {
  for (const auto& [folder, programs] : {kOnCpu, kOnCuda, kNewer}) {
    const ConformReport report = conform_folder(folder, {DType::float32, 1e-5});
    expect_agreement(report, programs);
    double worst = 0.0;
    for (const ConformOutcome& outcome : report.outcomes) worst = std::max(worst, outcome.worst);
    EXPECT_LT(1e-9, worst) << "it did not compute in float32";
  }
}

// The order of a race is one of several: here the other branch first, as H200s were seen to do.
TEST(Conform, Accepts_every_order_that_a_race_allows_and_no_other) {
  const std::map<std::string, ConformStatus> orders = {
      {"lb.bias lb.weight la.bias la.weight l0.bias l0.weight", ConformStatus::agreed},
      {"la.bias la.weight lb.bias lb.weight l0.bias l0.weight", ConformStatus::agreed},
      {"la.bias lb.bias lb.weight la.weight l0.bias l0.weight", ConformStatus::agreed},
      {"la.weight la.bias lb.bias lb.weight l0.bias l0.weight", ConformStatus::order_mismatch},
  };
  const auto recorded =
      read_recording(ZP_SOURCE_DIR "/tests/traces/pytorch-2.11.0-cuda/P11_multi_root.jsonl.gz");
  ASSERT_TRUE(recorded);
  for (const auto& [order, status] : orders) {
    Recording other = *recorded;
    other.executed_nodes.clear();
    other.tokens = {"gt+"};
    std::istringstream words(order);
    for (std::string word; words >> word;) other.tokens.push_back("acc:" + word);
    other.tokens.emplace_back("gt-");
    EXPECT_EQ(status, conform(other, "P11", {}).status) << order;
  }
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
  EXPECT_EQ(kProgramsSpecified, static_cast<int>(names.size()));
}

}  // namespace
}  // namespace zeroproof

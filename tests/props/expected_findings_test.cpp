// What a folder's expected.json says of its recordings: verify reports each finding too many or too
// few.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "props/verify.h"
#include "tests/scratch_path.h"

namespace zeroproof {
namespace {

constexpr const char* kRecording = "exception_recovery__z3_fp32_w1_r0.jsonl.gz";

struct Expectation {
  const char* name;
  const char* falsified;
  const char* others;
  std::size_t unexpected;  // lines
};

class ExpectedFindingsOf : public ::testing::TestWithParam<Expectation> {
 protected:
  ExpectedFindingsOf() : folder_(scratch_path("expected_findings")) {
    std::filesystem::create_directories(folder_);
    std::filesystem::copy_file(
        std::string(ZP_SOURCE_DIR "/tests/traces/deepspeed-edaa7221-cuda/") + kRecording, path());
    std::ofstream(folder_ + "/expected.json")
        << "{\"falsified\": {\"" << kRecording << "\": [" << GetParam().falsified << "]"
        << GetParam().others << "}}";
  }
  ~ExpectedFindingsOf() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/" + kRecording; }

  const std::string folder_;
};

TEST_P(ExpectedFindingsOf, A_recording_are_neither_more_nor_less) {
  const auto expected = read_expected_findings(folder_);
  ASSERT_TRUE(expected) << expected.error().text;
  Replay replay({}, {});
  ASSERT_TRUE(replay.add(path()));
  VerifyReport report{.replay = replay.finish()};
  report.unexpected = unexpected_lines(report.replay, folder_, *expected);
  EXPECT_EQ(GetParam().unexpected, report.unexpected.size());
  EXPECT_EQ(GetParam().unexpected == 0, report.has_replay_held());
  EXPECT_FALSE(report.has_held());  // its other parts are empty
}

INSTANTIATE_TEST_SUITE_P(Of, ExpectedFindingsOf,
                         ::testing::Values(Expectation{"what_there_is", R"("P4", "P11")", "", 0},
                                           Expectation{"one_too_few", R"("P4")", "", 1},
                                           Expectation{"one_too_many", R"("P4", "P11", "P28")", "",
                                                       1},
                                           Expectation{"a_recording_that_is_gone", R"("P4", "P11")",
                                                       R"(, "gone.jsonl": ["P1"])", 1}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace zeroproof

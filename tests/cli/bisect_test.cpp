// `zeroproof bisect` on releases that need no PyTorch (tests/data/subject/fake_release.sh).
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kData = ZP_SOURCE_DIR "/tests/data/subject/";

class Bisect : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new ScratchFolder;
    zeroproof("hunt --progress none --seed 5 --budget 60x --engine differs --python " + kData +
              "fake_subject.py --corpus " + (*folder_ / "found"));
    for (const auto& entry : fs::directory_iterator(*folder_ / "found"))
      if (!entry.path().filename().string().starts_with("search-")) finding_ = entry.path();
  }
  static void TearDownTestSuite() { delete folder_; }

  static CommandResult bisect(const std::string& more) {
    return zeroproof("bisect --progress none --package torch --environments " + kData +
                     "fake_release.sh " + finding_ + " " + more);
  }

  static inline ScratchFolder* folder_ = nullptr;
  static inline std::string finding_;
};

TEST_F(Bisect, Names_the_release_that_brought_a_finding_and_the_one_that_mended_it) {
  const CommandResult result = bisect("--versions 0.1.0,0.1.2,0.2.0,0.3.9,0.4.0,0.4.1");
  EXPECT_EQ(0, result.exit_code) << result.err;
  for (const char* part :
       {"torch 0.2.0 brought it (0.1.2 is without)", "torch 0.4.0 mended it (0.3.9 is with it)"})
    EXPECT_NE(std::string::npos, result.out.find(part)) << part << "\n" << result.out;

  const json document = json::parse(bisect("--versions 0.1.0..0.3.9 --json").out);
  EXPECT_EQ("zeroproof.bisect/1", document["schema"]);
  EXPECT_EQ("gradients at step", document["signature"]);
  EXPECT_EQ(json({{{"before", "0.1.2"}, {"after", "0.2.0"}, {"becomes", "present"}}}),
            document["changes"]);
  EXPECT_EQ(7U, document["releases"].size()) << "of the range";
}

// The maker is asked for releases of the engine's package, with the PyTorch of the finding.
TEST_F(Bisect, Knows_whose_releases_an_engine_has) {
  for (const auto& [engine, package] : {std::pair("megatron", "megatron-core"),
                                        std::pair("deepspeed", "deepspeed"),
                                        {"fsdp2", "torch"}}) {
    const std::string file = *folder_ / (std::string(engine) + ".json");
    json document = json::parse(read_file(finding_));
    document["engine"] = engine;
    document["versions"]["torch"] = "2.15.0+cpu";
    write_file(file, document.dump());
    const CommandResult result = zeroproof("bisect --progress none --environments " + kData +
                                           "fake_release.sh " + file + " --versions 0.2.1,9.0.0");
    const std::string with = package == std::string("torch") ? "" : "2.15.0";
    const std::string expected = std::string("no wheel of ") + package + " 0.2.1 for torch " + with;
    EXPECT_NE(std::string::npos, result.out.find(expected)) << result.out << result.err;
  }
}

TEST_F(Bisect, Says_which_releases_could_not_run) {
  const CommandResult result = bisect("--versions 0.2.1,0.3.9,0.4.0,9.0.0");
  EXPECT_EQ(0, result.exit_code) << result.err;
  for (const char* part : {"  0.2.1       cannot run  ", "no wheel of torch 0.2.1",
                           "torch 0.4.0 mended it (0.3.9 is with it)", "0.3.9 has it already"})
    EXPECT_NE(std::string::npos, result.out.find(part)) << part << "\n" << result.out;
}

TEST_F(Bisect, Is_inconclusive_where_no_release_has_the_finding) {
  EXPECT_EQ(3, bisect("--versions 0.1.0,0.1.1").exit_code);
  EXPECT_EQ(77, bisect("--versions 0.2.1").exit_code);
}

TEST_F(Bisect, Refuses_what_is_no_range_and_no_finding) {
  EXPECT_EQ(2, bisect("").exit_code);
  EXPECT_EQ(2, bisect("--versions 0.1..x").exit_code);
  EXPECT_EQ(77, bisect("--versions 7.0.0..8.0.0").exit_code);
  const CommandResult other = zeroproof("bisect " + kData + "fake_subject.py --versions 1.0.0");
  EXPECT_EQ(2, other.exit_code);
  EXPECT_NE(std::string::npos, other.err.find("fake_subject.py")) << other.err;
}

}  // namespace
}  // namespace zeroproof::cli_test

// The reference walker over recordings of real DeepSpeed jobs: it accuses those that are known to
// have gone wrong, and no other.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "props/reference/recording.h"

namespace zeroproof::reference {
namespace {

// Recordings with a finding, by the beginning of their names.
struct Unhealthy {
  std::string_view prefix;
  Rule rule;
  std::string_view why;
};
constexpr std::array kUnhealthy = {
    Unhealthy{"exception_recovery__z2", Rule::gradient_once,
              "H1: an aborted backward leaves its gradients in the bucket"},
    Unhealthy{"exception_recovery__z3", Rule::gradient_once, "H1, in stage 3"},
    Unhealthy{"tiled_loss__z2", Rule::gradient_once,
              "the recorder writes bucket.add for a tile that was not added"},
    Unhealthy{"tiled_loss__z2", Rule::bucket_contents, "the same"}};

std::vector<std::filesystem::path> recordings() {
  std::vector<std::filesystem::path> paths;
  const std::string folder = std::string(ZP_SOURCE_DIR) + "/tests/traces/deepspeed-edaa7221-cuda";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".gz") paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

TEST(ReferenceRecordings, Accuses_those_that_went_wrong_and_no_other) {
  int walked = 0;
  std::array<int, kUnhealthy.size()> found = {};
  for (const std::filesystem::path& path : recordings()) {
    const auto one = walk_recording(path.string());
    ASSERT_TRUE(one.has_value()) << one.error().text;
    walked += one->is_walked ? 1 : 0;
    const std::string name = path.filename().string();
    if (!one->is_walked) {
      EXPECT_TRUE(name.starts_with("two_engines")) << name << ": " << one->reason;
    }
    for (const Finding& finding : one->findings) {
      const auto is_it = [&](const Unhealthy& it) {
        return name.starts_with(it.prefix) && it.rule == finding.rule;
      };
      const auto at = std::ranges::find_if(kUnhealthy, is_it);
      if (at == kUnhealthy.end())
        ADD_FAILURE() << name << ": " << info(finding.rule).id << " at lc " << finding.lc << ": "
                      << finding.text;
      else
        ++found[static_cast<std::size_t>(at - kUnhealthy.begin())];
    }
  }
  EXPECT_EQ(walked, 191);
  for (std::size_t i = 0; i < kUnhealthy.size(); ++i) EXPECT_EQ(found[i], 4) << kUnhealthy[i].why;
}

}  // namespace
}  // namespace zeroproof::reference

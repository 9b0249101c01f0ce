// The reference walker over recordings of real DeepSpeed jobs: it accuses no healthy one.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "props/reference/recording.h"

namespace zeroproof::reference {
namespace {

std::vector<std::string> traces_below(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".gz") paths.push_back(entry.path().string());
  std::ranges::sort(paths);
  return paths;
}

TEST(ReferenceRecordings, Accuses_no_recorded_job_of_DeepSpeed) {
  Coverage coverage;
  int walked = 0;
  for (const std::string& path :
       traces_below(std::getenv("ZP_TRACES") ? std::getenv("ZP_TRACES") : std::string(ZP_SOURCE_DIR) + "/tests/traces/deepspeed-edaa7221-cuda")) {
    const auto one = walk_recording(path);
    ASSERT_TRUE(one.has_value()) << one.error().text;
    walked += one->is_walked ? 1 : 0;
    if (!one->is_walked) std::cout << path << ": " << one->reason << "\n";
    coverage.add(one->coverage);
    for (const Finding& finding : one->findings)
      ADD_FAILURE() << path << ": " << info(finding.rule).id << " at lc " << finding.lc << ": "
                    << finding.text;
  }
  EXPECT_GT(walked, 100);
  for (const RuleInfo& rule : rules())
    std::cout << rule.id << " " << coverage.applied[static_cast<std::size_t>(rule.rule)] << "\n";
}

}  // namespace
}  // namespace zeroproof::reference

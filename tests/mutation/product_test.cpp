// The product has no fault in it: neither its program nor the sources of its engine.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "props/mutation/fault.h"
#include "tests/read_file.h"

namespace zeroproof::mutation {
namespace {

namespace fs = std::filesystem;

TEST(Product, Program_has_no_sentence_of_a_fault) {
  const std::string program = read_file(ZP_BINARY);
  ASSERT_GT(program.size(), 1'000'000U);
  std::size_t looked_for = 0;
  for (const Fault* fault : hunted_faults()) {
    if (!fault->is_woven) continue;
    EXPECT_EQ(program.find(fault->sentence), program.npos) << fault->id << ": " << fault->sentence;
    ++looked_for;
  }
  EXPECT_GE(looked_for, 600U);
  EXPECT_EQ(program.find("active_fault"), program.npos);
}

TEST(Product, Sources_ask_for_no_fault) {
  const std::regex question("_bug\\b|departs\\(|planted|active_fault|fault_state");
  std::size_t files = 0;
  for (const char* layer : {"model", "engine", "sim", "include"}) {
    if (!fs::exists(fs::path(ZP_SOURCE_DIR) / layer)) continue;
    for (const auto& file : fs::recursive_directory_iterator(fs::path(ZP_SOURCE_DIR) / layer)) {
      if (file.path().extension() != ".h" && file.path().extension() != ".cpp") continue;
      ++files;
      EXPECT_FALSE(std::regex_search(read_file(file.path()), question)) << file.path();
    }
  }
  EXPECT_GE(files, 300U);
}

}  // namespace
}  // namespace zeroproof::mutation

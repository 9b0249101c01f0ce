// docs/reference/properties.md names every checker of programs, and each of them speaks.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <chrono>
#include <string>

#include "props/hunt/activity.h"
#include "props/hunt/program_hunt.h"
#include "tests/read_file.h"

namespace zeroproof::hunt {
namespace {

std::string page() {
  return read_file(ZP_SOURCE_DIR "/docs/reference/properties.md");
}

// The share that the page gives for a checker; "missing" without a row.
std::string share_of(const std::string& text, const Checker& checker) {
  const std::string row =
      fmt::format("\n| `{}` | {} | {} | ", checker.name, checker.number, checker.sentence);
  const std::size_t at = text.find(row);
  if (at == std::string::npos) return "missing";
  const std::size_t begin = at + row.size();
  return text.substr(begin, text.find(" |", begin) - begin);
}

TEST(ApplicabilityPage, Has_each_checker_and_each_has_judged) {
  const std::string text = page();
  for (const Checker& checker : checkers()) {
    EXPECT_NE(share_of(text, checker), "missing") << checker.name;
    EXPECT_NE(share_of(text, checker), "never") << checker.name;
  }
  for (const Elsewhere& one : judged_elsewhere())
    EXPECT_NE(text.find(fmt::format("\n| `{}` | {} |\n", one.number, one.why)), std::string::npos)
        << one.number;
}

int percent_of(const std::string& share) {
  return share.ends_with(" %") && !share.starts_with("under") ? std::stoi(share) : 0;
}

// A count of work: a checker that the page gives two cases in a hundred has some in 300.
TEST(ApplicabilityPage, Says_what_fresh_cases_say) {
  constexpr std::uint64_t kCases = 300;
  constexpr int kSure = 2;
  ProgramHunter hunter({.seed = 1, .minimizes = false, .counts_relations = true}, {.now_ns = [] {
                         return std::chrono::steady_clock::now().time_since_epoch().count();
                       }});
  const auto run = hunter.run_unmutated(0, kCases, INT64_MAX, [](const ProgramFound&) {});
  const std::string text = page();
  for (const Checker& checker : checkers())
    if (percent_of(share_of(text, checker)) >= kSure) {
      EXPECT_GT(run.activity.of(checker.name), 0U) << checker.name;
    }
  for (const Elsewhere& one : judged_elsewhere())
    EXPECT_EQ(run.activity.of(one.number), 0U) << one.number;
}

}  // namespace
}  // namespace zeroproof::hunt

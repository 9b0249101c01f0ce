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

// What stands between `begin` and `end` in the text; "missing" where `begin` does not.
std::string between(const std::string& text, const std::string& begin, const char* end) {
  const std::size_t at = text.find(begin);
  if (at == std::string::npos) return "missing";
  const std::size_t from = at + begin.size();
  return text.substr(from, text.find_first_of(end, from) - from);
}

// The share that the page gives for a checker; a relation has a row with its sentence.
std::string share_of(const std::string& text, const Checker& checker) {
  if (!checker.name.starts_with("MR"))
    return between(text.substr(text.find("<!-- generated: begin -->")),
                   fmt::format("`{}` ", checker.name), ",\n");
  const std::string share =
      between(text, fmt::format("\n| `{}` | {} | ", checker.name, checker.sentence), "|");
  return share == "missing" ? share : share.substr(0, share.size() - 1);
}

TEST(ApplicabilityPage, Has_each_checker_and_each_has_judged) {
  const std::string text = page();
  for (const Checker& checker : checkers()) {
    EXPECT_NE(share_of(text, checker), "missing") << checker.name;
    EXPECT_NE(share_of(text, checker), "never") << checker.name;
  }
  for (const Elsewhere& one : judged_elsewhere()) {
    const std::size_t reason = text.find(fmt::format(" | {} |\n", one.why));
    ASSERT_NE(reason, std::string::npos) << one.why;
    const std::string row =
        text.substr(text.rfind('\n', reason), reason - text.rfind('\n', reason));
    EXPECT_NE(row.find(fmt::format("`{}`", one.number)), std::string::npos) << one.number;
  }
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

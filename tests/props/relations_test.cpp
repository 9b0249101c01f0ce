// Relations between two runs of one engine.
#include "props/relations/relation.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "props/program/draw.h"
#include "props/program/program_json.h"
#include "props/program/program_text.h"
#include "props/program/source.h"
#include "props/relations/pair.h"
#include "props/run_properties.h"
#include "sim/schedulers/random.h"

namespace zeroproof::relations {
namespace {

using program::RunnableProgram;

std::unique_ptr<const RunnableProgram> drawn(std::uint64_t seed) {
  program::Source source(seed);
  auto runnable = RunnableProgram::make(program::draw_program(source));
  EXPECT_TRUE(runnable) << seed;
  return std::move(*runnable);
}

program::ProgramRun run(const RunnableProgram& runnable, std::uint64_t seed) {
  RandomScheduler scheduler(seed);
  scheduler.new_execution();
  return program::run_program(runnable, {.chooser = &scheduler});
}

TEST(Relations, Are_properties_of_their_own) {
  std::set<std::string_view> numbers;
  for (const Relation& relation : all_relations()) {
    EXPECT_TRUE(numbers.insert(relation.number).second) << relation.number;
    EXPECT_EQ(relation.property().number, relation.number);
    EXPECT_EQ(find_relation(relation.property().id), &relation);
  }
  EXPECT_EQ(find_relation("P26"), nullptr);
}

TEST(Relations, Hold_in_drawn_programs) {
  constexpr std::uint64_t kPrograms = 40;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const auto first = drawn(seed);
    const program::ProgramRun seen = run(*first, seed);
    if (seen.has_failed()) continue;  // what that says, others judge
    for (const Relation& relation : all_relations()) {
      const auto pair = Pair::make(relation, *first);
      if (!pair) continue;
      const program::ProgramRun other = run(pair->other(), seed + 1);
      ASSERT_FALSE(other.has_failed()) << relation.number << " seed " << seed;
      const auto finding = pair->compare(seen, other);
      EXPECT_FALSE(finding) << relation.number << " seed " << seed << ": " << finding->text << "\n"
                            << program::program_text(pair->other().program());
    }
  }
}

// Each changes the program: one compared with itself proves no relation. Of MR1, MR7, MR11 and MR15
// ranks, data or the order are other ones.
TEST(Relations, Compare_with_another_program) {
  constexpr std::uint64_t kPrograms = 60;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const auto first = drawn(seed);
    for (const Relation& relation : all_relations()) {
      const auto pair = Pair::make(relation, *first);
      if (!pair || relation.number == "MR11") continue;
      const program::DataChange& change = pair->other().data().change();
      const bool is_changed = change.role != nullptr || change.exponent != 0;
      EXPECT_TRUE(is_changed || pair->other().program() != first->program())
          << relation.number << " seed " << seed;
    }
  }
}

std::string one_window(const std::string& config) {
  return R"({"schema":"zeroproof.program/1","world":{"ranks":2},"config":{)" + config +
         R"(},"models":[{"name":"m","body":[{"name":"l0","linear":{"inputs":2,"outputs":3}}]}],
    "engines":[{"name":"a","model":"m"}],"body":[{"forward":{"engine":"a","as":"g"}},
    {"backward":{"engine":"a","value":"g"}},{"step":{"engine":"a"}}]})";
}

bool speaks(std::string_view number, const std::string& document) {
  const auto program = program::parse_program(document, "test");
  EXPECT_TRUE(program) << program.error().text;
  const auto runnable = RunnableProgram::make(*program);
  EXPECT_TRUE(runnable) << runnable.error().text;
  return Pair::make(*find_relation(number), **runnable) != nullptr;
}

TEST(Relations, Do_not_speak_where_numbers_would_be_rounded) {
  const std::string clipped = R"("gradient_clipping":0.5)";
  const std::string plain = R"("gradient_clipping":0.0)";
  const std::string half = R"("gradient_clipping":0.0,"fp16":{"enabled":true,"loss_scale":16})";
  EXPECT_TRUE(speaks("MR7", one_window(plain)));
  EXPECT_FALSE(speaks("MR7", one_window(clipped)));
  EXPECT_FALSE(speaks("MR7", one_window(half)));
  EXPECT_TRUE(speaks("MR15", one_window(plain)));
  EXPECT_FALSE(speaks("MR15", one_window(half)));
}

// A run in which the last norm that some rank reports is another one.
program::ProgramRun tampered(program::ProgramRun run) {
  for (program::RankRun& rank : run.segments.back().ranks)
    for (program::Observation& one : rank.seen)
      if (one.what == program::Observed::norm) one.values.front() += 1.0;
  return run;
}

bool has_norm(const program::ProgramRun& run) {
  for (const program::Observation& one : run.segments.back().ranks.front().seen)
    if (one.what == program::Observed::norm && !one.is_unspecified) return true;
  return false;
}

TEST(Relations, See_one_number_that_differs) {
  constexpr std::uint64_t kPrograms = 400;
  std::set<std::string_view> seen;
  for (std::uint64_t seed = 0; seed < kPrograms && seen.size() < all_relations().size(); ++seed) {
    const auto first = drawn(seed);
    for (const Relation& relation : all_relations()) {
      if (seen.contains(relation.number)) continue;
      const auto pair = Pair::make(relation, *first);
      if (!pair) continue;
      const program::ProgramRun run_of_first = run(*first, seed);
      if (run_of_first.has_failed() || !has_norm(run_of_first)) break;
      EXPECT_TRUE(pair->compare(run_of_first, tampered(run(pair->other(), seed))))
          << relation.number << " seed " << seed;
      seen.insert(relation.number);
    }
  }
  EXPECT_EQ(seen.size(), all_relations().size());
}

// The comparison looks at every rank in its place.
TEST(Relations, See_a_rank_that_is_not_in_its_place) {
  const auto program = program::parse_program(one_window(R"("gradient_clipping":0.0)"), "test");
  const auto runnable = RunnableProgram::make(*program);
  const auto pair = Pair::make(*find_relation("MR1"), **runnable);
  ASSERT_TRUE(pair);
  const program::ProgramRun first = run(**runnable, 1);
  EXPECT_FALSE(pair->compare(first, run(pair->other(), 2)));
  EXPECT_TRUE(pair->compare(first, first));
}

}  // namespace
}  // namespace zeroproof::relations

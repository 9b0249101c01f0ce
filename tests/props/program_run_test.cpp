// Programs on engines, against the unsharded reference.
#include "props/interpreter/program_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "props/interpreter/difference.h"
#include "props/program/draw.h"
#include "props/program/program_json.h"
#include "props/program/program_text.h"
#include "props/program/source.h"
#include "props/train/cell_run.h"
#include "sim/schedulers/random.h"

namespace zeroproof::program {
namespace {

// Every difference and error of one simulated run, a line each; empty: it equals the reference.
std::string problems_of(const RunnableProgram& runnable, std::uint64_t seed) {
  const auto reference = run_reference(runnable);
  RandomScheduler scheduler(seed);
  scheduler.new_execution();
  const ProgramRun run = run_program(runnable, {.chooser = &scheduler});
  std::string problems;
  for (std::size_t i = 0; i < run.segments.size(); ++i) {
    for (const sim::Finding& finding : run.segments[i].findings) problems += finding.text + "\n";
    for (std::size_t rank = 0; rank < run.segments[i].ranks.size(); ++rank) {
      const RankRun& one = run.segments[i].ranks[rank];
      if (one.error) problems += train::text_of(one.error) + "\n";
      if (one.error) continue;
      const auto place = rank / static_cast<std::size_t>(runnable.program().world.tensor);
      for (const Difference& difference :
           differences(one.seen, reference[i][place], tolerance_of(runnable.program())))
        problems += fmt::format("rank {}: {}\n", rank, difference.text);
    }
  }
  return problems;
}

std::string two_windows(int stage, const std::string& precision) {
  constexpr const char* kModel = R"([{"name":"m","body":[
    {"name":"l0","linear":{"inputs":2,"outputs":3,"has_bias":true}},
    {"name":"c","checkpoint":{"body":[{"name":"l1","linear":{"inputs":2,"outputs":2}}]}}]}])";
  constexpr const char* kWindow = R"({"forward":{"engine":"a","as":"g"}},
    {"backward":{"engine":"a","value":"g"}},{"step":{"engine":"a"}})";
  return fmt::format(
      R"({{"schema":"zeroproof.program/1","config":{{"zero_optimization":{{"stage":{}}}{}}},
          "world":{{"ranks":2}},"models":{},"engines":[{{"name":"a","model":"m"}}],
          "body":[{},{}]}})",
      stage, precision, kModel, kWindow, kWindow);
}

TEST(ProgramRun, EqualsTheReferenceInEveryStageAndPrecision) {
  for (int stage = 0; stage < 4; ++stage)
    for (const char* precision :
         {"", R"(,"bf16":{"enabled":true})", R"(,"fp16":{"enabled":true,"loss_scale":16})",
          R"(,"torch_autocast":{"enabled":true,"dtype":"bfloat16"})"}) {
      const auto program = parse_program(two_windows(stage, precision), "test");
      ASSERT_TRUE(program) << program.error().text;
      const auto runnable = RunnableProgram::make(*program);
      ASSERT_TRUE(runnable) << runnable.error().text;
      EXPECT_EQ(problems_of(**runnable, 1), "") << stage << precision;
    }
}

// A resumed job counts on, also where it takes whatever was saved last.
TEST(ProgramRun, ResumesFromTheLatestCheckpoint) {
  auto program = parse_program(two_windows(1, ""), "test");
  ASSERT_TRUE(program) << program.error().text;
  const auto middle = program->body.begin() + 3;
  program->body.insert(middle, {Statement{Save{.engine = "a", .tag = "t"}},
                                Statement{Resume{.ranks = 2, .stage = 1, .tag = ""}}});
  const auto runnable = RunnableProgram::make(*program);
  ASSERT_TRUE(runnable) << runnable.error().text;
  EXPECT_EQ(problems_of(**runnable, 1), "");
  const ProgramRun run = run_program(**runnable, {});
  ASSERT_EQ(run.segments.size(), 2U);
  double steps = 0.0;
  for (const Observation& seen : run.segments.back().ranks.front().seen)
    if (seen.what == Observed::counters) steps = seen.values.at(1);
  EXPECT_EQ(steps, 2.0);
}

TEST(ProgramRun, DrawnProgramsEqualTheReference) {
  constexpr std::uint64_t kDrawnPrograms = 150;
  for (std::uint64_t seed = 0; seed < kDrawnPrograms; ++seed) {
    Source source(seed);
    const auto runnable = RunnableProgram::make(draw_program(source));
    ASSERT_TRUE(runnable) << seed << ": " << runnable.error().text;
    EXPECT_EQ(problems_of(**runnable, seed), "")
        << "seed " << seed << "\n"
        << program_text((*runnable)->program(), &(*runnable)->contract());
  }
}

// --- what is compared ---------------------------------------------------------------------------

TEST(ProgramRun, SeesPermutedElements) {
  const Observations reference = {{Observed::gradients, "w", {2}, {1.0, 2.0}}};
  const Observations rotated = {{Observed::gradients, "w", {2}, {2.0, 1.0}}};
  EXPECT_TRUE(differences(reference, reference, {}).empty());
  const auto found = differences(rotated, reference, {});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().text, "w[0] is 2 and not 1");
}

TEST(ProgramRun, ComparesTheSameNameInItsOrder) {
  const Observations reference = {{Observed::loss, "g", {}, {1.0}},
                                  {Observed::loss, "g", {}, {2.0}}};
  const Observations swapped = {{Observed::loss, "g", {}, {2.0}}, {Observed::loss, "g", {}, {1.0}}};
  EXPECT_EQ(differences(swapped, reference, {}).size(), 1U);
  EXPECT_EQ(differences({reference.front()}, reference, {}).front().text, "g was not seen");
}

// Elements, ranks and forwards are distinct: a sum says which contributions are in it.
TEST(ProgramData, ElementsAndRanksHaveContributionsOfTheirOwn) {
  const auto program = parse_program(two_windows(2, ""), "test");
  ASSERT_TRUE(program);
  const DataPlan data(*program);
  const auto of = [&](int rank) { return data.inputs("a", 0, rank).at(1).values(); };
  const std::vector<double> first = of(0);
  for (std::size_t i = 0; i < first.size(); ++i) {
    for (std::size_t j = i + 1; j < first.size(); ++j) EXPECT_NE(first[i], first[j]) << i << j;
    EXPECT_NE(std::abs(first[i]), std::abs(of(1)[i])) << i;
  }
}

// Sixteen contributions of four ranks fit into the eight bits that bfloat16 has.
TEST(ProgramData, OfIdentityHaveEachContribution) {
  auto program = parse_program(two_windows(2, R"(,"bf16":{"enabled":true},
      "gradient_accumulation_steps":4)"),
                               "test");
  ASSERT_TRUE(program) << program.error().text;
  program->world.ranks = 4;
  program->data.mode = Data::Mode::identity;
  const Body window = program->body;
  for (int micro = 1; micro < 4; ++micro)
    program->body.insert(program->body.end(), window.begin(), window.end());
  const DataPlan data(*program);
  double sum = 0.0;
  for (int rank = 0; rank < 4; ++rank)
    for (int slot = 0; slot < 4; ++slot) {
      const double value = data.inputs("a", slot, rank).at(1).values().front();
      EXPECT_NE(value, 0.0) << rank << slot;
      sum += value;
    }
  EXPECT_LE(std::abs(sum), 256.0);
  EXPECT_GT(std::abs(sum), 16.0);
}

// A mean over three ranks and three micro-batches is one of whole numbers.
TEST(ProgramData, AreMultiplesOfWhatDividesThem) {
  auto program = parse_program(two_windows(1, R"(,"gradient_accumulation_steps":3)"), "test");
  ASSERT_TRUE(program) << program.error().text;
  program->world.ranks = 3;
  for (const Data::Mode mode : {Data::Mode::exact, Data::Mode::identity}) {
    program->data.mode = mode;
    for (const double value : DataPlan(*program).inputs("a", 0, 1).at(1).values())
      EXPECT_EQ(std::remainder(value, 9.0), 0.0) << value;
  }
}

// One replica of a tensor-parallel group overflows, and all of them skip the step.
TEST(ProgramRun, SkipsTheStepThatOneReplicaCannotTake) {
  auto program =
      parse_program(two_windows(1, R"(,"fp16":{"enabled":true,"loss_scale":16})"), "test");
  ASSERT_TRUE(program) << program.error().text;
  program->world.tensor = 2;
  std::get<Forward>(program->body.front().kind).spike = Spike{.module = "l0", .rank = 3};
  const auto runnable = RunnableProgram::make(*program);
  ASSERT_TRUE(runnable) << runnable.error().text;
  EXPECT_EQ(problems_of(**runnable, 1), "");
  int skipped = 0;
  const auto reference = run_reference(**runnable);
  for (const Observation& one : reference.front().front())
    if (one.what == Observed::outcome && one.values.back() == 1.0) ++skipped;
  EXPECT_EQ(skipped, 1);
}

}  // namespace
}  // namespace zeroproof::program

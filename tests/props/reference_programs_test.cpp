// The reference walker beside programs: what it knows of them, and that it accuses no program.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "props/interpreter/judged_ranks.h"
#include "props/interpreter/program_unseen.h"
#include "props/interpreter/rank_walkers.h"
#include "props/interpreter/rest_points.h"
#include "props/program/draw.h"
#include "props/program/program_json.h"
#include "props/program/program_text.h"
#include "sim/schedulers/random.h"

namespace zeroproof::program {
namespace {

using reference::Unseen;

// One engine "a" over the model, and a body.
Program program_of(std::string_view model, std::string_view body, int stage = 3) {
  const auto program =
      parse_program(fmt::format(R"({{"schema":"zeroproof.program/1","world":{{"ranks":2}},
          "config":{{"zero_optimization":{{"stage":{}}}}},
          "models":[{{"name":"m","body":[{}]}}],"engines":[{{"name":"a","model":"m"}}],
          "body":[{}]}})",
                                stage, model, body),
                    "test");
  if (!program) throw std::logic_error(program.error().text);
  return *program;
}

constexpr std::string_view kLayer = R"({"name":"l0","linear":{"inputs":2,"outputs":3}})";
constexpr std::string_view kForward = R"({"forward":{"engine":"a","as":"g"}})";
constexpr std::string_view kBackward = R"({"backward":{"engine":"a","value":"g"}})";
constexpr std::string_view kStep = R"({"step":{"engine":"a"}})";

std::string hooked(std::string_view body) {
  return fmt::format(R"({{"forward":{{"engine":"a","as":"g","hooks":[
      {{"at":"gradient","module":"l0","body":[{}]}}]}}}})",
                     body);
}

std::string block(std::string_view kind, std::string_view body) {
  return fmt::format(R"({{"block":{{"kind":"{}","engine":"a","body":[{}]}}}})", kind, body);
}

using Flags = std::set<std::string>;

Flags flags_of(const Unseen& unseen) {
  Flags flags;
  const auto add = [&](bool is_so, const char* name) {
    if (is_so) flags.insert(name);
  };
  add(unseen.keeps_graphs, "keeps_graphs");
  add(unseen.gathers_inside, "gathers_inside");
  add(unseen.skips_sync, "skips_sync");
  add(unseen.has_idle_forwards, "has_idle_forwards");
  add(unseen.reads_elsewhere, "reads_elsewhere");
  add(unseen.sets_scale, "sets_scale");
  add(unseen.lacks_gradients, "lacks_gradients");
  add(unseen.has_many_outputs, "has_many_outputs");
  add(unseen.sets_leaves, "sets_leaves");
  add(unseen.marks_tiles, "marks_tiles");
  add(unseen.differentiates_inside, "differentiates_inside");
  return flags;
}

struct UnseenRow {
  std::string model;
  std::string body;
  Flags flags;
};

TEST(ReferencePrograms, TellTheWalkerWhatNoEventTells) {
  const std::string layer(kLayer);
  const std::string frozen =
      R"({"name":"l0","linear":{"inputs":2,"outputs":3,"trained":"frozen"}})";
  const std::string use = R"(,{"name":"x","external_use":{"module":"l0"}})";
  const std::string returns = R"({"name":"c","custom":{"shape":[2],"returns_weight":true}})";
  const std::string tiles =
      R"({"name":"t","tiled":{"body":[{"name":"l0","linear":{"inputs":2,"outputs":2}}]}})";
  const std::string forward(kForward);
  const UnseenRow rows[] = {
      {layer, forward, {}},
      {layer,
       forward + R"(,{"backward":{"engine":"a","value":"g","retain_graph":true}})",
       {"keeps_graphs"}},
      {layer,
       forward + R"(,{"backward":{"engine":"a","value":"g","create_graph":true}})",
       {"keeps_graphs"}},
      {layer, block("no_sync", kForward), {}},
      {layer, block("coalesce", kForward), {}},
      {layer, block("gathered", kForward), {}},
      {layer, hooked(block("gathered", "")), {"differentiates_inside"}},
      {layer, hooked(R"({"raise":{}})"), {}},
      {layer, R"({"forward":{"engine":"a","as":"g","mode":"no_grad"}})", {"has_idle_forwards"}},
      {frozen, forward, {"has_idle_forwards"}},
      {frozen, R"({"forward":{"engine":"a","as":"g","inputs_need_grad":true}})", {}},
      {layer,
       R"({"forward":{"engine":"a","as":"g","skips":[{"module":"l0"}]}})",
       {"has_idle_forwards"}},
      {layer,
       R"({"forward":{"engine":"a","as":"g","around":"non_reentrant"}})",
       {"differentiates_inside"}},
      {layer, R"({"set_scale":{"engine":"a","loss_scale":2}})", {"sets_scale"}},
      {layer + use, forward, {}},
      {layer, R"({"register_external":{"engine":"a","module":"l0"}})", {}},
      {returns, forward, {"has_many_outputs"}},
      {tiles, forward, {"has_idle_forwards", "marks_tiles"}},
  };
  for (const UnseenRow& row : rows) {
    const Program program = program_of(row.model, row.body);
    EXPECT_EQ(flags_of(unseen_of(program, program.engines.front())), row.flags)
        << row.model << " " << row.body;
  }
}

std::set<std::size_t> rests(std::string_view body) {
  const Program program = program_of(kLayer, body);
  const auto contract = Contract::of(program);
  if (!contract) throw std::logic_error(contract.error().text);
  return rest_points(program, *contract);
}

TEST(ReferencePrograms, RestWhereNothingOfAWindowIsLeft) {
  using Points = std::set<std::size_t>;
  const std::string window = fmt::format("{},{},{}", kForward, kBackward, kStep);
  EXPECT_EQ(rests(window), Points{2});
  EXPECT_EQ(rests(window + "," + window), (Points{2, 5}));
  EXPECT_EQ(rests(fmt::format(R"({},{{"forward":{{"engine":"a","as":"h"}}}},{},{})", kForward,
                              kBackward, kStep)),
            Points());  // h waits for a backward
  EXPECT_EQ(rests(fmt::format(R"({},{{"backward":{{"engine":"a","value":"g","retain_graph":true}}}},
                                 {})",
                              kForward, kStep)),
            Points());
}

// Every finding of a walker, a line each.
std::string findings_of(const RunnableProgram& runnable, std::uint64_t seed,
                        reference::Coverage& coverage) {
  train::RunJudge judge(judged_ranks(runnable));
  RankWalkers walkers(runnable, {}, judge);
  RandomScheduler scheduler(seed);
  scheduler.new_execution();
  const ProgramRun run =
      run_program(runnable, {.observes = false,
                             .chooser = &scheduler,
                             .watch = &judge,
                             .rests = rest_points(runnable.program(), runnable.contract())});
  if (run.has_failed()) return "the run failed";
  walkers.finish(run.segments.back().ranks);
  std::string text;
  walkers.for_each_finding([&](int rank, const reference::Finding& finding) {
    text += fmt::format("rank {}: {}, at lc {}: {}\n", rank, reference::info(finding.rule).id,
                        finding.lc, finding.text);
  });
  coverage.add(walkers.coverage());
  return text;
}

TEST(ReferencePrograms, AreNotAccused) {
  constexpr std::uint64_t kPrograms = 400;
  reference::Coverage coverage;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    Source source(seed);
    const auto runnable = RunnableProgram::make(draw_program(source));
    ASSERT_TRUE(runnable) << seed << ": " << runnable.error().text;
    EXPECT_EQ(findings_of(**runnable, seed, coverage), "")
        << "seed " << seed << "\n"
        << program_text((*runnable)->program(), &(*runnable)->contract());
  }
  // Policies that count hooks are faults here; graphs are seldom kept for a second backward.
  const std::set<reference::Rule> seldom = {
      reference::Rule::count_once, reference::Rule::whole_unasked, reference::Rule::kept_bound};
  for (const reference::RuleInfo& rule : reference::rules())
    if (!seldom.contains(rule.rule)) {
      EXPECT_GT(coverage.applied[static_cast<std::size_t>(rule.rule)], 0) << rule.id;
    }
  EXPECT_LT(coverage.parameter_time.percent_unspecified(), 3.0);
}

}  // namespace
}  // namespace zeroproof::program

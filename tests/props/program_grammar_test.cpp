#include "props/program/grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "props/interpreter/program_count.h"
#include "props/program/config_domains.h"
#include "props/program/contract.h"
#include "props/program/draw.h"
#include "props/program/program_json.h"

namespace zeroproof::program {
namespace {

constexpr int kPrograms = 20'000;

// What 20,000 programs have in them.
struct Hunt {
  std::map<std::string, int> productions;  // how many programs have it
  std::map<std::string, int> errors;
  std::map<std::size_t, int> kinds;  // of statements
  std::map<int, int> stages;
  std::int64_t statements = 0;
  std::int64_t refused = 0;
  std::int64_t longest = 0;
  std::vector<std::string> senseless;
};

void add(const Program& program, Hunt& hunt) {
  const auto contract = Contract::of(program);
  if (!contract) {
    hunt.senseless.push_back(contract.error().text + "\n" + program_json(program));
    return;
  }
  std::int64_t statements = 0;
  visit_statements(program.body, [&](const Statement& statement) {
    const Expectation& expected = contract->of(statement);
    ++statements;
    ++hunt.kinds[statement.kind.index()];
    hunt.refused += expected.is_refused() ? 1 : 0;
    if (expected.refusal) ++hunt.errors[std::string(engine_error_name(*expected.refusal))];
  });
  hunt.statements += statements;
  hunt.longest = std::max(hunt.longest, statements);
  ++hunt.stages[program.config.stage];
}

const Hunt& hunt() {
  static const Hunt kHunt = [] {
    Hunt all;
    for (int seed = 0; seed < kPrograms; ++seed) {
      Source source(static_cast<std::uint64_t>(seed) * 7919 + 1);
      const DrawnProgram drawn = draw_with_productions(source);
      add(drawn.program, all);
      std::set<std::string> names;
      for (const Production* const made : drawn.productions) names.emplace(made->name);
      for (const std::string& name : names) ++all.productions[name];
    }
    return all;
  }();
  return kHunt;
}

TEST(ProgramGrammar, DrawsProgramsThatMakeSense) {
  EXPECT_EQ(hunt().senseless, std::vector<std::string>());
}

// Also those that few jobs have a place for.
TEST(ProgramGrammar, DrawsEachProductionInTwoHundredPrograms) {
  constexpr int kOnceIn = 200;
  std::vector<std::string> seldom;
  for (const Production& production : grammar()) {
    const auto drawn = hunt().productions.find(std::string(production.name));
    if (drawn == hunt().productions.end() || drawn->second < kPrograms / kOnceIn)
      seldom.emplace_back(production.name);
  }
  EXPECT_EQ(seldom, std::vector<std::string>());
}

// What a stage does not read may be anything that it accepts (/allgather_bucket_size is odd).
TEST(ProgramGrammar, DrawsMembersOfOtherStages) {
  int odd = 0;
  int unread = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Source source(seed);
    const ZeroConfig config = draw_program(source).config;
    odd += config.stage % 3 == 0 && config.allgather_bucket_size % 2 != 0 ? 1 : 0;
    unread += !config.ignore_unused_parameters && !config.is_offloaded() ? 1 : 0;
  }
  EXPECT_GT(odd, 0);
  EXPECT_GT(unread, 0);
}

TEST(ProgramGrammar, DrawsEachKindOfStatementAndEachStage) {
  EXPECT_EQ(hunt().kinds.size(), std::variant_size_v<StatementKind>);
  EXPECT_EQ(hunt().stages.size(), 4U);
}

// A program for each error that a statement can come to (program_typestate_test.cpp).
TEST(ProgramGrammar, DrawsEachNamedError) {
  EXPECT_EQ(hunt().errors.size(), 15U);
}

TEST(ProgramGrammar, IsMostlyAboutWhatIsAllowed) {
  const double share = static_cast<double>(hunt().refused) / static_cast<double>(hunt().statements);
  EXPECT_GT(share, 0.02);
  EXPECT_LT(share, 0.08);
}

TEST(ProgramGrammar, DrawsSmallPrograms) {
  const double mean = static_cast<double>(hunt().statements) / kPrograms;
  EXPECT_GT(mean, 10.0);
  EXPECT_LT(mean, 50.0);
  EXPECT_LT(hunt().longest, 1000);
}

TEST(ProgramGrammar, NamesEachProductionOnce) {
  std::set<std::string_view> names;
  for (const Production& production : grammar()) {
    EXPECT_TRUE(names.insert(production.name).second) << production.name;
    EXPECT_GT(production.weight, 0U) << production.name;
  }
  EXPECT_EQ(grammar().front().name, "plain_training");
}

TEST(ProgramGrammar, DrawsTheSameProgramAgain) {
  for (int seed = 0; seed < 200; ++seed) {
    Source fresh(static_cast<std::uint64_t>(seed));
    const Program program = draw_program(fresh);
    std::vector<std::uint32_t> values;
    for (const Choice& choice : fresh.choices().list) values.push_back(choice.value);
    Source replay(values);
    EXPECT_EQ(program_json(draw_program(replay)), program_json(program)) << seed;
  }
}

TEST(ProgramGrammar, BeginsWithTheSimplestProgram) {
  Source zeros((std::vector<std::uint32_t>()));
  const Program program = draw_program(zeros);
  EXPECT_EQ(program.world, World());
  EXPECT_EQ(nodes_of(program.models.front()).size(), 1U);
  EXPECT_EQ(program.body.size(), 3U);  // a forward, its backward and a step
}

TEST(ProgramGrammar, HasADomainForEachKeyOfAConfiguration) {
  std::set<std::string_view> keys;
  for (const ConfigDomain& domain : config_domains()) {
    EXPECT_TRUE(keys.insert(domain.key).second) << domain.key;
    EXPECT_FALSE(domain.tried.empty()) << domain.key;
  }
}

TEST(ProgramGrammar, SimplestConfigurationsMakeEngines) {
  for (int stage = 0; stage < 4; ++stage) EXPECT_TRUE(validate(simplest_config(stage))) << stage;
}

}  // namespace
}  // namespace zeroproof::program

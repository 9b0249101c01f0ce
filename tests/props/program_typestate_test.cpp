#include "props/program/typestate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "props/interpreter/program_count.h"
#include "props/program/contract.h"
#include "props/program/program_json.h"
#include "tests/read_file.h"

namespace zeroproof::program {
namespace {

using RowDocument = nlohmann::ordered_json;

const std::string kRowFiles = ZP_SOURCE_DIR "/tests/data/program_rows/";

Program program_of(const RowDocument& row) {
  auto program = parse_program(row.at("program").dump(), "row");
  EXPECT_TRUE(program) << program.error().text;
  return program ? *program : Program();
}

std::vector<std::string> refusals_of(const Program& program, const Contract& contract) {
  std::vector<std::string> names;
  visit_statements(program.body, [&](const Statement& statement) {
    const Expectation& expected = contract.of(statement);
    if (!expected.is_refused()) return;
    names.emplace_back(expected.refusal ? engine_error_name(*expected.refusal) : "");
  });
  return names;
}

TEST(ProgramTypestate, EachErrorHasAStatementThatIsRefusedWithIt) {
  for (const RowDocument& row : RowDocument::parse(read_file(kRowFiles + "refusals.json"))) {
    const Program program = program_of(row);
    const auto contract = Contract::of(program);
    ASSERT_TRUE(contract) << row.dump() << "\n" << contract.error().text;
    EXPECT_EQ(refusals_of(program, *contract),
              std::vector<std::string>{row.at("error").get<std::string>()})
        << row.dump();
  }
}

// Errors of the engine that no statement comes to: refused in the configuration, or impossible.
TEST(ProgramTypestate, NamedErrorsWithoutAProgramAreThose) {
  std::set<std::string> missing;
  for (int id = 0; id <= static_cast<int>(EngineErrorId::group_smaller_than_launch); ++id)
    missing.emplace(engine_error_name(static_cast<EngineErrorId>(id)));
  for (const RowDocument& row : RowDocument::parse(read_file(kRowFiles + "refusals.json")))
    missing.erase(row.at("error").get<std::string>());
  const std::set<std::string> expected = {"eigenvalue_or_apex_in_backward",
                                          "fetch_bookkeeping_out_of_order",
                                          "fetch_order_changed",
                                          "fetch_order_differs_between_ranks",
                                          "gradient_added_after_reduction",
                                          "gradient_reduced_twice",
                                          "group_smaller_than_launch",
                                          "hooks_counted_outside_backward",
                                          "max_grad_norm_in_optimizer",
                                          "odd_allgather_bucket_size",
                                          "offload_of_unsupported_optimizer",
                                          "parameter_freed_while_used",
                                          "parameter_gathered_after_step",
                                          "parameter_not_released",
                                          "parameter_twice_in_bucket",
                                          "reduce_scatter_dtype_unsupported",
                                          "reduce_scatter_with_prescaling",
                                          "release_outside_backward",
                                          "scale_with_apex",
                                          "sum_reduction_unsupported",
                                          "unsupported_combination"};
  EXPECT_EQ(missing, expected);
}

TEST(ProgramTypestate, SenselessProgramsAreNone) {
  for (const RowDocument& row : RowDocument::parse(read_file(kRowFiles + "senseless.json"))) {
    const auto contract = Contract::of(program_of(row));
    ASSERT_FALSE(contract) << row.dump();
    EXPECT_NE(contract.error().text.find(row.at("why").get<std::string>()), std::string::npos)
        << row.dump() << "\n"
        << contract.error().text;
    EXPECT_EQ(contract.error().code, ErrorCode::usage);
  }
}

// A statement is walked the same way alone and in its program; an error does not change the state.
TEST(ProgramTypestate, ExpectsWhatTheContractSays) {
  for (const RowDocument& row : RowDocument::parse(read_file(kRowFiles + "refusals.json"))) {
    const Program program = program_of(row);
    const auto contract = Contract::of(program);
    auto typestate = Typestate::of(program);
    ASSERT_TRUE(contract && typestate) << row.dump();
    for (const Statement& statement : program.body) {
      EXPECT_FALSE(typestate->apply({Raise{}}));
      const auto expected = typestate->expect(statement);
      ASSERT_TRUE(expected) << row.dump();
      EXPECT_EQ(*expected, contract->of(statement)) << row.dump();
      const auto applied = typestate->apply(statement);
      ASSERT_TRUE(applied);
      EXPECT_EQ(*applied, *expected);
    }
  }
}

}  // namespace
}  // namespace zeroproof::program

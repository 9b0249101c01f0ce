// Mutation testing: its registry, its generator, and a small hunt.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "props/mutation/hunt.h"
#include "props/mutation/hunt_report.h"
#include "props/run_properties.h"
#include "props/train/case_draw.h"
#include "props/train/case_fields.h"
#include "props/train/case_shrink.h"
#include "tests/read_file.h"

namespace zeroproof::mutation {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(MutationTest, Every_bug_of_the_catalogue_has_a_fault_or_a_reason) {
  EXPECT_EQ(bug_catalogue().size(), 180U);
  EXPECT_EQ(std::ranges::count(bug_catalogue(), 1, &CatalogueRow::tier), 82);
  for (const CatalogueRow& row : bug_catalogue()) {
    const auto is_it = [&](const Fault& fault) { return fault.id.substr(0, 3) == row.id; };
    EXPECT_TRUE(std::ranges::any_of(catalogue_faults(), is_it)) << row.id;
  }
}

TEST(MutationTest, Faults_say_what_is_wrong_and_what_catches_it) {
  for (const Fault& fault : catalogue_faults()) {
    if (!fault.is_modelled()) {
      EXPECT_TRUE(fault.properties.empty()) << fault.id;
      continue;
    }
    EXPECT_FALSE(fault.sentence.empty()) << fault.id;
    EXPECT_TRUE(Quirks::parse(fault.quirks).has_value()) << fault.id;
    EXPECT_FALSE(words_of(fault.properties).empty()) << fault.id;
    for (const std::string& number : words_of(fault.properties))
      EXPECT_NE(find_any_property(number), nullptr) << fault.id << " " << number;
  }
}

// What draws, runs and judges cases knows no fault.
TEST(MutationTest, Generator_is_blind) {
  const std::regex id("\\b[A-HQS-Z][0-9][0-9][a-d]?\\b");
  const std::string root = ZP_SOURCE_DIR;
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(root + "/props/train")) {
    const std::string name = file.path().filename().string();
    if (!name.starts_with("case_") && !name.starts_with("generated_")) continue;
    ++files;
    EXPECT_FALSE(std::regex_search(read_file(file.path()), id)) << name;
  }
  EXPECT_GE(files, 10);
  for (const char* judge :
       {"case_run.cpp", "collective_judge.cpp", "event_judges.cpp", "gather_judge.cpp",
        "kept_judge.cpp", "stage3_judge.cpp", "cost_judge.cpp", "fetch_judge.cpp",
        "record_judge.cpp", "residency_judge.cpp", "rest_bytes.cpp", "retained_judge.cpp",
        "case_parameters.cpp", "hunt.cpp", "counterexample_shrink.cpp"})
    EXPECT_FALSE(std::regex_search(read_file(root + "/props/mutation/" + judge), id)) << judge;
}

RC_GTEST_PROP(MutationTest, Drawn_cases_are_valid_and_come_back_from_json, (std::uint64_t seed)) {
  const train::CaseSpec spec = train::draw_case(seed);
  RC_ASSERT(train::why_invalid(spec).empty());
  const std::string json = train::case_json(spec);
  const auto read = train::parse_case(json, "test");
  RC_ASSERT(read.has_value());
  RC_ASSERT(train::case_json(*read) == json);
}

// What is never drawn, no hunt can need.
TEST(MutationTest, Every_field_of_a_case_is_drawn) {
  std::set<std::string> fields;
  std::set<std::string> drawn;
  const auto see = [&](auto spec) {
    train::visit_fields(spec, [&](const char* name, int value, int simple) {
      fields.insert(name);
      if (value != simple) drawn.insert(name);
    });
  };
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const train::CaseSpec spec = train::draw_case(seed);
    see(spec);
    for (const auto& layer : spec.layers) see(layer);
    for (const auto& call : spec.calls) see(call);
    for (const auto& micro : spec.micros) see(micro);
  }
  EXPECT_EQ(drawn, fields);
}

RC_GTEST_PROP(MutationTest, Shrinking_ends, (std::uint64_t seed)) {
  train::CaseSpec spec = train::draw_case(seed);
  int steps = 0;
  for (auto simpler = train::simpler_cases(spec); !simpler.empty();
       simpler = train::simpler_cases(spec)) {
    RC_ASSERT(++steps < 1000);
    spec = simpler.front();
    RC_ASSERT(train::why_invalid(spec).empty());
  }
}

constexpr const char* kWrongCases[] = {
    "",
    "{}",
    "[1]",
    R"({"ranks":2})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"x":1}]})",
    R"({"layers":[{}],"calls":[{"layer":7}],"micros":[{}]})",
    R"({"ranks":"two","layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"gathers":7}]})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"guests":2}]})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"gathers":5}]})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"abandons":1}]})",
    R"({"accumulation":2,"layers":[{}],"calls":[{}],"micros":[{},{"restores":1}]})",
    R"({"returns":1,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"stage":3,"granularity":1,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"stage":3,"returns":1,"layers":[{"is_raw":1}],"calls":[{}],
            "micros":[{"looks":1,"interrupt":11,"interrupt_at":1}]})",
    R"({"stage":3,"layers":[{}],"calls":[{}],"micros":[{"gathers":11}]})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"restores":10}]})",
    R"({"accumulation":2,"layers":[{}],"calls":[{}],"micros":[{"outstanding":5},{"detour":2}]})",
    R"({"ranks":3,"stage":2,"precision":1,"is_wire_float32":1,"accumulates_float32":1,
            "reads":1,"is_wide":1,"layers":[{}],"calls":[{},{}],"micros":[{}]})",
    R"({"ranks":2,"stage":1,"precision":1,"accumulation":2,"is_wire_float32":1,
            "accumulates_float32":1,"is_wide":1,"layers":[{}],"calls":[{}],"micros":[{},{}]})",
    R"({"ranks":2,"stage":3,"reorders":3,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"ranks":2,"stage":2,"reorders":1,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"ranks":2,"stage":3,"layers":[{}],"calls":[{}],"micros":[{"drops_on":1}]})",
    R"({"stage":3,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"outstanding":1,"branches":1}]})",
    R"({"stage":3,"reads":1,"skips_frames":1,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"outstanding":1,"branches":2}]})",
    R"({"precision":2,"is_dynamic":1,"owns_scale":3,"layers":[{}],"calls":[{}],
            "micros":[{},{"restores":1,"renews":1}]})",
    R"({"layers":[{}],"calls":[{}],
            "micros":[{"repeats":1,"block":4,"interrupt":1,"interrupt_at":1}]})",
    R"({"tensor":3,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"sequence":2,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"ranks":3,"tensor":2,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"tensor":2,"layers":[{}],"calls":[{}],"micros":[{"restores":1}]})",
    R"({"tensor":2,"precision":2,"layers":[{}],"calls":[{}],
            "micros":[{"overflow":1},{"asks":1}]})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"aborts_at_weight":1}]})",
    R"({"stage":2,"layers":[{}],"calls":[{}],"micros":[{"block":5}]})",
    R"({"engines":2,"stage":1,"layers":[{}],"calls":[{}],"micros":[{"again":1}]})",
    R"({"precision":2,"is_dynamic":1,"layers":[{}],"calls":[{}],"micros":[{"again":1}]})",
    R"({"layers":[{"has_twin":1}],"calls":[{}],"micros":[{}]})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"freezes":1}]})",
    R"({"ranks":2,"brims":1,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"precision":3,"is_unsafe":3,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"precision":2,"is_dynamic":1,"accumulation":2,"layers":[{}],"calls":[{}],
            "micros":[{"block":6},{"block":5}]})",
    R"({"stage":3,"accumulation":2,"layers":[{}],"calls":[{}],
            "micros":[{"outstanding":5},{"idle_forward":3,"has_bypass":1}]})",
    R"({"layers":[{},{}],"calls":[{}],"micros":[{"detour":4,"detour_at":1,"freezes":2}]})",
    R"({"stage":1,"precision":3,"has_grad_scaler":1,"layers":[{}],"calls":[{}],
            "micros":[{"interrupt":9,"interrupt_at":1}]})",
    R"({"reads":1,"registers":2,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"stage":1,"counts_nothing":3,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"is_read":6,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"engines":2,"stage":1,"scales_second":1,"layers":[{}],"calls":[{}],
            "micros":[{"outstanding":1}]})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"overflow":1},{}]})",
    R"({"stage":3,"experts":1,"first_ranks":2,"first_stage":1,"layers":[{}],"calls":[{}],
            "micros":[{},{}]})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"overflow":1,"idle_forward":3}]})",
    R"({"layers":[{"is_weight_frozen":1,"has_bias":1}],"calls":[{}],
            "micros":[{"aborts":1,"aborts_at_weight":1}]})",
    R"({"precision":2,"is_dynamic":1,"layers":[{}],"calls":[{}],
            "micros":[{"overflow":1},{"overflow":1},{"overflow":1},{"overflow":1}]})",
    R"({"ranks":2,"precision":2,"brims":3,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"precision":2,"grown":1,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"engines":2,"takes_turns":1,"layers":[{}],"calls":[{}],
            "micros":[{"interrupt":12,"interrupt_at":1}]})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"misuse":16}]})",
    R"({"stage":3,"counts_nothing":1,"layers":[{}],"calls":[{}],"micros":[{"misuse":15}]})",
    R"({"precision":3,"layers":[{}],"calls":[{}],"micros":[{"autocasts":1}]})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"autocasts":2}]})",
    R"({"stage":3,"packs":1,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"stage":1,"layers":[{}],"calls":[{}],"micros":[{"clears":4}]})",
    R"({"layers":[{"shape":1}],"calls":[{}],"micros":[{}]})",
    R"({"layers":[{"is_raw":1,"shape":3}],"calls":[{}],"micros":[{}]})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"keeps_dimension":2}]})",
    R"({"precision":1,"scales_by_one":1,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"stage":1,"is_offloaded":1,"is_strict":1,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"accepts":2,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"stage":3,"is_manual":1,"experts":1,"input_grad":1,"layers":[{}],"calls":[{}],
            "micros":[{"clears":5}]})",
    R"({"stage":3,"layers":[{}],"calls":[{}],"micros":[{"detour":5,"detour_at":2}]})",
    R"({"stage":1,"layers":[{}],"calls":[{}],"micros":[{"interrupt":13,"interrupt_at":1}]})",
    R"({"engines":2,"stage":1,"accumulation":2,"layers":[{}],"calls":[{}],
            "micros":[{"interrupt":13,"interrupt_at":1},{}]})",
    R"({"layers":[{}],"calls":[{}],"micros":[{"misuse":17}]})",
    R"({"stage":1,"packs":2,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"container":3,"layers":[{}],"calls":[{}],"micros":[{}]})",
    R"({"heads":2,"container":3,"layers":[{}],"calls":[{},{}],"micros":[{}]})",
    R"({"stage":2,"heads":2,"layers":[{}],"calls":[{},{}],"micros":[{"outstanding":6}]})",
    R"({"stage":1,"engines":2,"layers":[{}],"calls":[{}],"micros":[{"misuse":8}]})",
};

TEST(MutationTest, Wrong_cases_are_refused) {
  for (const char* json : kWrongCases)
    EXPECT_FALSE(train::parse_case(json, "test").has_value()) << json;
  EXPECT_TRUE(
      train::parse_case(R"({"layers":[{}],"calls":[{}],"micros":[{}]})", "test").has_value());
}

// Two faults, the canary and the unmutated engine, with minimising and the way through tokens.
TEST(MutationTest, A_hunt_finds_and_its_token_shows_it_again) {
  HuntOptions options;
  options.unmutated_cases = 60;
  options.cases_max = 500;
  std::int64_t ticks = 0;
  const HuntWatch watch{.now_ns = [&] { return ++ticks; }};
  const std::vector<const Fault*> some = {find_fault("B19"), find_fault("C13")};
  const HuntReport report = hunt(some, options, watch);
  EXPECT_TRUE(report.canary.is_found);
  EXPECT_TRUE(report.unmutated.is_clean()) << report.unmutated.findings.front();
  ASSERT_EQ(report.found.size(), 2U);
  for (const Found& one : report.found) {
    ASSERT_TRUE(one.is_found) << one.fault->id;
    EXPECT_TRUE(one.replay_ok && one.unmutated_replay_ok);
    EXPECT_LE(one.counterexample.spec.ranks, 2) << one.fault->id;
    EXPECT_LE(one.counterexample.spec.parameters(), 2) << one.fault->id;
    const auto token = read_token(token_of(one.counterexample, one.fault->id), "test");
    ASSERT_TRUE(token.has_value());
    EXPECT_TRUE(replay(token->counterexample, one.fault).find(one.property->number));
    EXPECT_TRUE(replay(token->counterexample, nullptr).falsified.empty());
  }
  EXPECT_NE(hunt_json(report).find(R"("schema":"zeroproof.mutation/1")"), std::string::npos);
}

}  // namespace
}  // namespace zeroproof::mutation

// Every monitor against a short stream that breaks its property and a repaired twin.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "props/registry.h"
#include "tests/props/property_script.h"

namespace zeroproof {
namespace {

struct StreamCase {
  std::string property;
  std::string fact;
  std::string broken;
  std::string repaired;
  Scope scope = Scope::trace;
  Status status = Status::falsified;
};

std::vector<StreamCase> load_streams() {
  std::ifstream file(ZP_SOURCE_DIR "/tests/props/property_streams.json");
  std::vector<StreamCase> cases;
  for (const auto& row : nlohmann::json::parse(file))
    cases.push_back({row.at("property"), row.at("fact"), row.at("broken"), row.at("repaired"),
                     row.value("scope", "trace") == "trace" ? Scope::trace : Scope::explore,
                     row.contains("status") ? Status::latent : Status::falsified});
  return cases;
}

std::vector<Verdict> judge(const std::string& words, Scope scope) {
  const PropertyScript script(words);
  PropertyRun run(scope, script.names());
  for (const HookEvent& event : script.events()) run.on_event(event);
  run.finish();
  return run.verdicts();
}

Verdict verdict_of(const std::vector<Verdict>& verdicts, const std::string& number) {
  for (const Verdict& verdict : verdicts)
    if (verdict.property->number == number) return verdict;
  return {};
}

TEST(PropertyStreams, Falsify_the_broken_one_and_hold_for_its_twin) {
  for (const StreamCase& stream : load_streams()) {
    SCOPED_TRACE(stream.property + ": " + stream.fact);
    const Verdict broken = verdict_of(judge(stream.broken, stream.scope), stream.property);
    EXPECT_EQ(status_name(broken.status), status_name(stream.status));
    ASSERT_FALSE(broken.findings.empty());
    EXPECT_FALSE(broken.findings.front().text.empty());
    EXPECT_FALSE(broken.findings.front().event.empty());
    const Verdict repaired = verdict_of(judge(stream.repaired, stream.scope), stream.property);
    EXPECT_TRUE(repaired.findings.empty()) << repaired.findings.front().text;
  }
}

TEST(PropertyStreams, Cover_every_monitor) {
  std::set<std::string> covered;
  for (const StreamCase& stream : load_streams()) covered.insert(stream.property);
  for (const Property& property : all_properties()) {
    const bool has_monitor = make_monitor({&property, Scope::trace, nullptr}) != nullptr;
    EXPECT_EQ(covered.contains(std::string(property.number)), has_monitor) << property.number;
  }
}

// A monitor that never finds its events would not find a violation either.
TEST(PropertyStreams, Hold_for_at_least_one_twin_of_each_property) {
  std::set<std::string> held;
  std::set<std::string> all;
  for (const StreamCase& stream : load_streams()) {
    all.insert(stream.property);
    const Verdict repaired = verdict_of(judge(stream.repaired, stream.scope), stream.property);
    if (repaired.status == Status::held) held.insert(stream.property);
  }
  EXPECT_EQ(held, all);
}

TEST(PropertyCatalogue, Finds_by_id_and_number) {
  std::set<std::string_view> ids;
  for (const Property& property : all_properties()) {
    EXPECT_EQ(find_property(property.id), &property);
    EXPECT_EQ(find_property(property.number), &property);
    EXPECT_TRUE(ids.insert(property.id).second) << property.id;
    EXPECT_NE(property.scopes.bits, 0);
  }
  EXPECT_EQ(find_property("P0"), nullptr);
}

constexpr const char* kCleanIteration =
    "f+ reset[d0>d0] f- g+1 pro+ enter[d0>d1s] q queue[d1s>d1qs] pro- oh w:a w:b cb+ ph+ e+ "
    "fl:a,b ge12 exit[d1qs>qs] e- ph- cb- g-1 s+ ms s- ";

std::string state_after(int iterations, const PropertyScript& script) {
  PropertyRun run(Scope::trace, script.names());
  for (int iteration = 0; iteration < iterations; ++iteration)
    for (const HookEvent& event : script.events()) run.on_event(event);
  std::string bytes;
  run.append_state(bytes);
  return bytes;
}

TEST(PropertyRun, State_does_not_grow_with_the_trace) {
  const PropertyScript script(kCleanIteration);
  const std::string early = state_after(kForwardsMax + 1, script);
  EXPECT_EQ(early, state_after(20 * kForwardsMax, script));
  EXPECT_NE(early, state_after(0, script));
}

TEST(PropertyRun, Judges_nothing_without_an_engine) {
  for (const Verdict& verdict : judge("g+1 g-1!ValueError", Scope::trace))
    EXPECT_EQ(status_name(verdict.status), "not_applicable") << verdict.property->number;
}

// Two engines whose managers each follow their own states, in any interleaving.
RC_GTEST_PROP(PropertyRun, Keeps_interleaved_engines_apart, (const std::vector<bool>& turns)) {
  std::string words = "@0 f+ f- @1 f+ f- ";
  int depths[2] = {0, 0};
  for (const bool turn : turns) {
    int& depth = depths[turn ? 1 : 0];
    words += turn ? "@1 " : "@0 ";
    const int next = depth == 0 ? 1 : 0;
    words += (next == 1 ? "enter[d" : "exit[d") + std::to_string(depth) + ">d" +
             std::to_string(next) + "] ";
    depth = next;
  }
  RC_ASSERT(verdict_of(judge(words, Scope::trace), "P14").findings.empty());
  const std::string crossed = words + "@0 exit[d7>d6]";
  const bool has_state = std::find(turns.begin(), turns.end(), false) != turns.end();
  RC_ASSERT(verdict_of(judge(crossed, Scope::trace), "P14").findings.empty() == !has_state);
}

}  // namespace
}  // namespace zeroproof

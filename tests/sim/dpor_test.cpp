#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "sim/search/dpor.h"
#include "tests/sim/brute_force.h"
#include "tests/sim/random_code.h"

namespace zeroproof::search_test {
namespace {

struct Reduced {
  DporCounts counts;
  std::set<std::uint64_t> classes;
  std::set<std::uint32_t> failures;
};

Reduced reduce(const RandomProgram& program) {
  Reduced found;
  Dpor dpor(program);
  found.counts = dpor.run([&](const HappensBefore& trace, const RandomProgram::State& state) {
    found.classes.insert(trace.class_hash());
    found.failures.insert(state.failed | (program.has_ended(state) ? 0U : 1U << 31));
    return true;
  });
  return found;
}

// Eight programs a case; more than half of them are small enough for brute force.
RC_GTEST_PROP(Dpor, Visits_every_class_once_and_finds_what_brute_force_finds,
              (std::uint64_t seed)) {
  for (std::uint64_t i = 0; i < 8; ++i) {
    const RandomProgram program(random_code(seed + i));
    BruteForce brute(program);
    if (!brute.run(4'000)) continue;
    const Reduced reduced = reduce(program);
    RC_ASSERT(reduced.counts.has_exhausted);
    RC_ASSERT(reduced.counts.blocked == 0U);
    RC_ASSERT(reduced.counts.executions == brute.seen().classes);
    RC_ASSERT(reduced.classes.size() == brute.seen().classes);
    RC_ASSERT(reduced.failures == brute.seen().failures);
  }
}

// What the property above is worth depends on what the programs do.
TEST(Dpor, Is_tested_on_programs_that_block_fail_and_commute) {
  std::size_t compared = 0, deadlocks = 0, failing = 0, reduced = 0;
  for (std::uint64_t seed = 0; seed < 800; ++seed) {
    const RandomProgram program(random_code(seed));
    BruteForce brute(program);
    if (!brute.run(4'000)) continue;
    ++compared;
    const Seen& seen = brute.seen();
    deadlocks += *seen.failures.rbegin() >> 31;
    failing += seen.failures.size() > 1 ? 1 : 0;
    reduced += seen.classes * 10 < seen.executions && seen.classes > 1 ? 1 : 0;
    ASSERT_EQ(reduce(program).counts.executions, seen.classes) << seed;
  }
  EXPECT_GT(compared, 400U);
  EXPECT_GT(deadlocks, 100U);
  EXPECT_GT(failing, 100U);
  EXPECT_GT(reduced, 100U);
}

// Nidhugg's optimal DPOR visits 8! = 40,320 (docs/spec/explorer.md 1.5).
TEST(Dpor, Visits_increments_of_one_counter_once) {
  class Hooks {
   public:
    struct State {
      std::uint32_t fired = 0;
    };
    State initial() const { return {}; }
    std::size_t processes() const { return 8; }
    void next(const State& state, std::uint32_t process, std::vector<TraceEvent>& events) const {
      if ((state.fired >> process & 1U) == 0) events.push_back({process, 0, &add_});
    }
    bool is_enabled(const State&, const TraceEvent&) const { return true; }
    void execute(State& state, const TraceEvent& event) const {
      state.fired |= 1U << event.process;
    }

   private:
    Footprint add_{{0, Touch::add}};
  } hooks;
  Dpor dpor(hooks);
  const DporCounts counts = dpor.run([](const auto&, const auto&) { return true; });
  EXPECT_EQ(counts.executions, 1U);
  EXPECT_EQ(counts.events, 8U);
}

TEST(Dpor, Stops_when_it_is_told_to) {
  const RandomProgram program(Code(3, {{Op::write, 0, 1, false}, {Op::write, 0, 2, false}}));
  Dpor dpor(program);
  std::uint64_t left = 5;
  const DporCounts counts = dpor.run([&](const auto&, const auto&) { return --left != 0; });
  EXPECT_EQ(counts.executions, 5U);
  EXPECT_FALSE(counts.has_exhausted);
}

}  // namespace
}  // namespace zeroproof::search_test

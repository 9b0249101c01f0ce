// The same seed is the same execution: every decision, call and value of it (anchors 5.5, T2).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "tests/sim/world/random_program.h"

namespace zeroproof {
namespace {

TEST(SimWorldDeterminism, Ten_thousand_executions_run_twice_are_the_same) {
  std::set<Fingerprint> hashes;
  std::uint64_t differences = 0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    const Fingerprint hash = random_execution(seed);
    differences += random_execution(seed) != hash ? 1 : 0;
    hashes.insert(hash);
  }
  EXPECT_EQ(differences, 0U);
  EXPECT_EQ(hashes.size(), 10'000U);
}

// The same number in every build: compiler, optimisation, sanitizer.
TEST(SimWorldDeterminism, Ten_thousand_executions_have_one_hash_in_every_build) {
  sim::History all;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    const Fingerprint hash = random_execution(seed);
    all.add(hash.low);
    all.add(hash.high);
  }
  EXPECT_EQ(all.value().low, 0x5c1543e94e6b7a46U);
  EXPECT_EQ(all.value().high, 0x8cb7602045a23de1U);
}

std::uint64_t number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

// For tests/nightly/70-determinism.sh, which compares what builds print.
TEST(SimWorldDeterminism, Seeds_that_are_asked_for_are_hashed) {
  const std::uint64_t count = number_in("ZP_DETERMINISM_SEEDS");
  if (count == 0) GTEST_SKIP() << "ZP_DETERMINISM_SEEDS says how many, ZP_DETERMINISM_FIRST where";
  const std::uint64_t first = number_in("ZP_DETERMINISM_FIRST");
  sim::History all;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Fingerprint hash = random_execution(seed);
    all.add(hash.low);
    all.add(hash.high);
  }
  std::printf("seeds %llu to %llu: %016llx%016llx\n", static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(first + count - 1),
              static_cast<unsigned long long>(all.value().high),
              static_cast<unsigned long long>(all.value().low));
}

}  // namespace
}  // namespace zeroproof

#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "zeroproof/engine/engine.h"

namespace zeroproof::peer {

// Under what the body of a row runs: as the engine is, or with one thing broken.
struct Twin {
  EngineOptions options;
  std::string fault = {};  // below the seam (faulty_runtime.h), or of the row itself

  bool has_fault(const std::string& name) const { return fault == name; }
};

// A row of tests/peer/upstream_tests.md: throws whatever says that it does not hold.
using RowBody = void (*)(const Twin& twin);

// Empty when the body returned, else why not.
std::string judge(RowBody body, const Twin& twin);

// All rows of the process by "Suite.name", the names that upstream gave.
std::map<std::string, RowBody>& rows();
bool add_row(const std::string& name, RowBody body);

// A twin from what the table says: "h4", "deepspeed-0.18.3", "rule: after_forward" (of the eager
// fallback), "fault: lost_reduction", or "" for a sound one.
Twin twin_of(const std::string& breaks_with);

}  // namespace zeroproof::peer

// A test of ours under upstream's name, whose body can also be run with something broken.
#define PEER_ROW(Suite, name)                                             \
  static void Suite##_##name##_row(const ::zeroproof::peer::Twin& twin);  \
  TEST(Suite, name) {                                                     \
    EXPECT_EQ(::zeroproof::peer::judge(Suite##_##name##_row, {}), "");    \
  }                                                                       \
  static const bool Suite##_##name##_is_known =                           \
      ::zeroproof::peer::add_row(#Suite "." #name, Suite##_##name##_row); \
  static void Suite##_##name##_row([[maybe_unused]] const ::zeroproof::peer::Twin& twin)

#pragma once

#include <gtest/gtest.h>

#include "props/museum/hunt.h"

namespace zeroproof::museum {

// The healthy engine holds in a case, with its values and its events.
inline void expect_healthy(const char* json) {
  const auto spec = train::parse_case(json, "test");
  ASSERT_TRUE(spec.has_value()) << spec.error().text;
  for (const bool is_of_events : {false, true}) {
    const TrialResult result = replay({*spec, is_of_events, {}}, nullptr);
    for (const Falsified& one : result.falsified)
      ADD_FAILURE() << one.property->number << ": " << one.text;
  }
}

}  // namespace zeroproof::museum

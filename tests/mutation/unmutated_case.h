#pragma once

#include <gtest/gtest.h>

#include "props/mutation/hunt.h"

namespace zeroproof::mutation {

// The unmutated engine holds in a case, with its values and its events.
inline void expect_unmutated(const char* json) {
  const auto spec = train::parse_case(json, "test");
  ASSERT_TRUE(spec.has_value()) << spec.error().text;
  for (const bool is_of_events : {false, true}) {
    const CaseResult result = replay({*spec, is_of_events, {}}, nullptr);
    for (const Falsified& one : result.falsified)
      ADD_FAILURE() << one.property->number << ": " << one.text;
  }
}

}  // namespace zeroproof::mutation

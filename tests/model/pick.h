#pragma once

#include <rapidcheck.h>

namespace zeroproof::testing {

// Uniform at every size of a property's cases: small cases come from shrinking.
template <class T>
T pick(T begin, T end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(begin, end));
}

}  // namespace zeroproof::testing

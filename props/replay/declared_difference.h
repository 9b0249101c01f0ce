#pragma once

#include <string>

namespace zeroproof {

// How the parameters of two files differ, in words about `odd`.
struct DeclaredDifference {
  std::string text;       // "inp.weight and 2 more are frozen"; empty: they do not
  std::string parameter;  // the first that differs
};

// Without `compares_all` only whether a parameter is trained. Parameters that a wrapper ignores are
// left out.
DeclaredDifference declared_difference(const std::string& reference, const std::string& odd,
                                       bool compares_all);

}  // namespace zeroproof

#pragma once

#include <span>
#include <string_view>

namespace zeroproof::mutation {

// A change of one statement that a rule makes (weaver/statements.py). Plain data, static.
struct StatementMutant {
  int number = 0;         // from 1
  std::string_view rule;  // delete, negate, swap, constant
  std::string_view file;
  int line = 0;
  std::string_view function;
  std::string_view text;  // what it changes, or its beginning
};

// All of them, in the order of their numbers. Generated (weaver/mutate.py).
std::span<const StatementMutant> mutant_table();

}  // namespace zeroproof::mutation

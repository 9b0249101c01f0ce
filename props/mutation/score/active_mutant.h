#pragma once

namespace zeroproof::mutation {

namespace detail {
extern constinit int active_mutant;
extern constinit unsigned char* reached_mutants;
}  // namespace detail

// Whether the statement mutant of that number (mutant_table.h) is the active one; every place that
// a mutant changes asks it. A process runs one mutant, on one thread.
inline bool is_mutant(int number) {
  if (detail::reached_mutants != nullptr) detail::reached_mutants[number] = 1;
  return detail::active_mutant == number;
}

}  // namespace zeroproof::mutation

#pragma once

#include <cstddef>
#include <vector>

#include "props/program/capabilities.h"

namespace zeroproof::program {

// The part of the grammar that a subject can do.
struct SubjectGrammar {
  Capabilities capabilities;
  std::vector<std::size_t> rows;  // of grammar(), ascending; the first row is always there

  bool has(std::size_t row) const;

  // Draws some programs of each row alone, and leaves out a row that no program contains. A
  // pure function of its argument and the grammar.
  static SubjectGrammar learn(Capabilities capabilities);
};

}  // namespace zeroproof::program

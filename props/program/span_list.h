#pragma once

#include <cstddef>
#include <vector>

#include "props/program/source.h"

namespace zeroproof::program {

// Places in a list of choices, from begin to before end.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

// Spans of one label that follow each other below one parent, perhaps with choices between them: a
// list of the program. Spans without choices are left out.
using SiblingRun = std::vector<Range>;
std::vector<SiblingRun> sibling_runs(const Choices& choices);

// What a deletion may take away, the largest first: each span, and parts of each run of siblings
// (all, halves, quarters, …) with the choices before or after them.
std::vector<Range> deletable_ranges(const Choices& choices);

}  // namespace zeroproof::program

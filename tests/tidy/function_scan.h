#pragma once

#include <string>
#include <vector>

#include "tests/tidy/source_file.h"

namespace zeroproof::tidy {

// A function found by its braces and parentheses, not by parsing C++.
struct FunctionSpan {
  std::size_t first_line = 0;  // of the head's parameter list, from 1
  std::size_t line_count = 0;  // from the opening to the closing brace; 0 for a declaration
  std::size_t parameter_count = 0;
};

// Every function declared or defined at namespace or class level; lambdas count to the function
// around them, initialiser lists to none.
std::vector<FunctionSpan> scan_functions(const SourceFile& file);

}  // namespace zeroproof::tidy

#pragma once

#include <string>

namespace zeroproof::program {

// A JSON document laid out for readers and diffs: a value that fits into 100 columns is on one
// line, of any other each item. Ends with a newline. ZP_CHECK: `json` is a document.
std::string json_lines(const std::string& json);

}  // namespace zeroproof::program

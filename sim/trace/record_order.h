#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/parse_result.h"
#include "sim/trace/record.h"

namespace zeroproof {

// The order that the records of one trace must have: a header, what was recorded with a clock that
// increases on each rank, an end (docs/reference/trace_format.md 2).
class RecordOrder {
 public:
  // Why this record cannot be the next one.
  ParseResult admit(const Record& record);

  bool has_header() const { return has_header_; }
  bool has_end() const { return has_end_; }

 private:
  ParseResult admit_event(const HookEvent& event);

  bool has_header_ = false;
  bool has_end_ = false;
  std::vector<std::uint64_t> last_lc_;  // by rank
};

// What is said of a trace that ends before its end record. `place`: its path, and a line.
std::string truncation_text(std::string_view place, std::string_view what);

}  // namespace zeroproof

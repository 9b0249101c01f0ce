#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/model/result.h"

namespace zeroproof {

// The index of the option taken at each choice point with two or more options, in order.
using Choices = std::vector<std::uint32_t>;

// One order of one scenario, complete enough to run it again. Plain data.
struct Schedule {
  std::string scenario;                         // id or path of the scenario file
  std::map<std::string, std::string> settings;  // policy, mode, N, ...
  std::uint64_t seed = 0;
  Choices choices;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// One line without blanks that needs no quoting in a shell:
//   zps1:SCENARIO:key=value,key=value:SEED:CHOICES:CHECKSUM
// CHOICES are run-length coded, `12x0,3,2x1` for twelve zeros, a three and two ones. Characters
// outside [A-Za-z0-9_./+-] are written %XX. The last field is eight hexadecimal digits over
// all before it, so that a paste that lost its end is noticed.
std::string schedule_text(const Schedule& schedule);

// Blanks and line ends are ignored, so a wrapped paste is fine. `where` names the source in
// errors ("--scheduler replay:FILE"); code unreadable.
Result<Schedule> parse_schedule(std::string_view text, std::string_view where);

// True when the text starts as a schedule of any version: how `replay` knows it from a trace.
bool is_schedule_text(std::string_view text);

// *.zps: the same text, wrapped at 100 columns. The file appears whole or not at all.
Result<void> write_schedule_file(const Schedule& schedule, const std::string& path);
Result<Schedule> read_schedule_file(const std::string& path);

}  // namespace zeroproof

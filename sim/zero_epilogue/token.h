#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/zero_epilogue/path_counts.h"
#include "sim/zero_epilogue/schedule_run.h"

namespace zeroproof::zero_epilogue {

// A schedule of the common model as one word:
//   zpe1.RULES.SETTINGS.ORDER.EXPECTED     zpe1.Dk3fa.P2N7K2F3M9.c5mXw.A3x26
// RULES says which rules it was made under. ORDER is a number in base64url: after `c` the choices,
// each among what was enabled then (mixed radix, the first choice is the lowest digit; where it
// ends the first event is taken); after `n` the rank of the complete schedule among all, which
// takes a count of all schedules to read. EXPECTED is what it violates and after how many events.
struct Token {
  std::uint32_t rules = 0;
  Settings settings;
  bool is_numbered = false;
  std::string order;  // base64url digits, the most significant first
  Property expected = Property::none;
  std::uint64_t events = 0;
};

std::string token_text(const Token& token);
bool is_token_text(std::string_view text);
Result<Token> parse_token(std::string_view text);  // code unreadable

// The events have to be possible in this order. They may end before the schedule does.
Token token_of(const Settings& settings, Property violated, const std::vector<Event>& events);

// The rank of a complete schedule, at most ceil(bits / 6) digits.
Token numbered_token(const PathCounts& counts, const Settings& settings, Property violated,
                     const std::vector<Event>& events);

// Runs the schedule to its end. Code usage when it is numbered and the instance cannot be counted.
Result<ScheduleRun> replay(const Token& token);

// Distinguishes rules: changes whenever a rank may do something else. `rules_hash` is a
// constant, so that a replay costs one execution; `measured_rules_hash` looks at the rules.
std::uint32_t rules_hash();
std::uint32_t measured_rules_hash();

}  // namespace zeroproof::zero_epilogue

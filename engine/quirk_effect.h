#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/engine/quirks.h"
#include "zeroproof/engine/zero_config.h"

namespace zeroproof {

// Where quirks are switched on.
struct QuirkSetting {
  const ZeroConfig& config;
  std::string_view policy = "exact";
  int sequence_ranks = 1;
};

// Why the quirk has no effect there, as "has no effect in stage 2": its hazard is another
// stage's, needs an option that is off, or is what the policy does anyway. Empty: it may show,
// with a program that has its trigger.
std::string why_without_effect(Quirk quirk, const QuirkSetting& setting);

// One sentence for each of them that has no effect, in the order of their numbers.
std::vector<std::string> notes_on(const Quirks& quirks, const QuirkSetting& setting);

// An error for a quirk that contradicts the policy: H23 is of proposal X2, whose prologue runs in
// every backward; other upstream policies never get that far.
Result<void> check_quirks(const Quirks& quirks, std::string_view policy);

}  // namespace zeroproof

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/schedulers/pct.h"
#include "sim/zero_epilogue/findings.h"
#include "sim/zero_epilogue/rank_rules.h"
#include "sim/zero_epilogue/ranks.h"

namespace zeroproof::zero_epilogue {

enum class WalkKind {
  uniform,       // each enabled event with the same probability
  pct,           // probabilistic concurrency testing of `depth`
  novelty,       // what its rank did least often in this state of its own
  pair_novelty,  // what its rank did least often before the other things that it could do
};

struct WalkOptions {
  WalkKind kind = WalkKind::uniform;
  std::uint32_t depth = 2;  // d of PCT
  std::uint64_t seed = 0;
  std::uint64_t schedules = 100'000;
  bool stops_at_first_finding = true;
  std::function<void(const std::vector<Event>&)> on_schedule = {};
  std::function<bool()> should_stop = {};  // asked now and then
};

struct WalkResult {
  std::uint64_t schedules = 0;
  std::uint64_t events = 0;
  bool was_stopped = false;  // by the caller
  Findings findings;
  std::optional<Property> first;  // what the first failing schedule violated
  std::vector<Event> failing;     // and its events
  // Tasks are the engines and streams, steps the longest schedule there can be. The choice among
  // the hooks of one rank is uniform and not part of the promise.
  std::optional<PctCertificate> pct;
};

// Runs complete schedules on the rules themselves, so N may be as large as 64. Every draw is an
// index into what is enabled: no draw is rejected. Schedule i depends on the seed and i alone
// (novelty: on all schedules before it). Code usage for novelty on too large an instance.
Result<WalkResult> walk(const Settings& settings, const WalkOptions& options);

// Events of a complete schedule without a violation; and without the completions, as
// docs/spec/explorer.md 5.2 counts the steps of PCT.
std::uint64_t events_of(const Settings& settings);
std::uint64_t own_events_of(const Settings& settings);

}  // namespace zeroproof::zero_epilogue

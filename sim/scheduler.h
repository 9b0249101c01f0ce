#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "model/order_count.h"
#include "zeroproof/internal/model/choice.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// How one execution ended.
struct ExecutionEnd {
  bool was_cut = false;                    // by ExecutionCut
  std::optional<Fingerprint> final_state;  // of a world that reports it; never set when cut
};

// What a scheduler knows of the space it walks. Absent: this scheduler does not know.
struct SchedulerStats {
  std::optional<std::uint64_t> states;        // distinct fingerprints met
  std::optional<std::uint64_t> transitions;   // distinct (state, option) pairs tried
  std::optional<OrderCount> complete_orders;  // known once the space is exhausted
  bool has_exhausted = false;                 // every order was covered
};

// A strategy for picking orders. The loop that drives executions calls, for each one,
// new_execution(), choose() as often as the world asks, end_execution().
//
// A world calls choose() with two or more options where orders differ. It may also call it with
// a single option: the answer is 0, without a record, but a searching scheduler sees the
// state and can count and prune it.
//
// Deterministic, not thread-safe. Wrappers (record, twice) hold a reference to another scheduler,
// which must outlive them.
class Scheduler : public Chooser {
 public:
  // Prepares the next execution; false when no execution is left.
  virtual bool new_execution() = 0;

  // An index below at.options.size(); throws ExecutionCut when the rest is known already.
  std::size_t choose(const ChoicePoint& at) override = 0;

  virtual void end_execution(const ExecutionEnd& end) = 0;

  virtual SchedulerStats stats() const { return {}; }

  // Why the world cannot be trusted: the same schedule led to different choice points, or a
  // replayed schedule does not fit. One line; exit code 4. The execution is cut at that point.
  virtual std::optional<std::string> divergence() const { return std::nullopt; }
};

// SPEC is one of fifo, random, pct:D, exhaustive, replay:FILE. `seed` is used by random and pct.
// Code usage for an unknown name, unreadable for a bad schedule file.
Result<std::unique_ptr<Scheduler>> make_scheduler(std::string_view spec, std::uint64_t seed);

}  // namespace zeroproof

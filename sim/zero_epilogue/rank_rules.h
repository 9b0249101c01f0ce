#pragma once

#include <bit>
#include <cstdint>

#include "sim/zero_epilogue/rank_state.h"
#include "sim/zero_epilogue/settings.h"

namespace zeroproof::zero_epilogue {

// What one rank can do: hooks as a mask, the other kinds as a bit each (1 << EventKind).
struct Enabled {
  std::uint64_t hooks = 0;
  std::uint16_t kinds = 0;  // never hook, never complete

  bool has(EventKind kind) const { return (kinds >> static_cast<unsigned>(kind) & 1U) != 0; }
  unsigned count() const {
    return static_cast<unsigned>(std::popcount(hooks) + std::popcount(kinds));
  }
};

// The rules of one rank (docs/spec/explorer.md 1.1), as a pure step function. Completions on
// the stream need all ranks and are asked of World.
class RankRules {
 public:
  explicit RankRules(const Settings& settings);

  const Settings& settings() const { return settings_; }
  Enabled enabled(const RankState& state) const;

  // The event has to be enabled. On a violation the state is no longer to be used.
  Property step(RankState& state, RankEvent event) const;

  bool has_ended(const RankState& state) const { return state.pass == settings_.passes; }
  bool has_finished(const RankState& state) const {
    return has_ended(state) && state.completed == collectives_;
  }
  // The rank is in its epilogue and only the stream holds it up.
  bool waits_for_stream(const RankState& state) const;
  // The epilogue looks at the stream and does not wait for it (M4).
  bool returns_unwaited() const { return is(Defect::return_without_wait); }
  bool has_tags() const { return is(Defect::launch_when_filled); }
  std::uint32_t collectives() const { return collectives_; }

 private:
  bool is(Defect defect) const { return settings_.defect == defect; }
  std::uint64_t open_hooks(const RankState& state) const;
  bool is_counter_zero(const RankState& state) const;
  bool may_run_counter(const RankState& state) const;
  bool may_run_callback(const RankState& state) const;
  bool is_bucket_full(std::uint64_t fired, std::uint32_t bucket) const;
  bool is_next_full(const RankState& state) const;
  std::uint32_t due(const RankState& state) const { return buckets_ * (state.pass + 1U); }
  void update(RankState& state) const;
  void pick_filled(RankState& state) const;
  void flush(RankState& state) const;
  Property fire(RankState& state, unsigned hook) const;
  Property run_epilogue(RankState& state) const;
  void launch(RankState& state) const;
  Property finish(RankState& state) const;

  Settings settings_;
  std::uint32_t buckets_;
  std::uint32_t collectives_;
  std::uint64_t all_;
  std::uint64_t first_phase_;
};

}  // namespace zeroproof::zero_epilogue

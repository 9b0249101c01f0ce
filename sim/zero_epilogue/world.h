#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "sim/zero_epilogue/rank_rules.h"
#include "sim/zero_epilogue/ranks.h"

namespace zeroproof::zero_epilogue {

// All ranks at once, with what each can do kept up to date.
class World {
 public:
  explicit World(const RankRules& rules) : rules_(rules), count_(rules.settings().ranks) {
    for (std::size_t rank = 0; rank < count_; ++rank) look(rank);
  }

  const RankRules& rules() const { return rules_; }
  std::size_t ranks() const { return count_; }
  const RankState& state(std::size_t rank) const { return states_[rank]; }
  unsigned moves(std::size_t rank) const { return moves_[rank]; }
  bool may_complete(std::size_t rank) const { return states_[rank].completed < joined_; }

  bool can_move(std::size_t rank) const { return moves_[rank] != 0 || may_complete(rank); }
  bool is_enabled(const Event& event) const {
    if (event.what.kind == EventKind::complete) return may_complete(event.rank);
    const Enabled& enabled = enabled_[event.rank];
    if (event.what.kind == EventKind::hook) return (enabled.hooks >> event.what.hook & 1U) != 0;
    return enabled.has(event.what.kind);
  }
  // All that can happen next, in canonical order.
  unsigned enabled_count() const {
    unsigned count = 0;
    for (std::size_t rank = 0; rank < count_; ++rank) {
      count += moves_[rank] + (may_complete(rank) ? 1U : 0U);
    }
    return count;
  }
  Event enabled_event(unsigned index) const {
    std::uint8_t rank = 0;
    for (;; ++rank) {
      const unsigned here = moves_[rank] + (may_complete(rank) ? 1U : 0U);
      if (index < here) break;
      index -= here;
    }
    if (index == moves_[rank]) return {rank, {EventKind::complete}};
    return {rank, move(rank, index)};
  }
  // Its index among what is enabled.
  unsigned index_of(const Event& event) const {
    for (unsigned index = 0;; ++index) {
      if (enabled_event(index) == event) return index;
    }
  }
  Property step(const Event& event) { return step(event.rank, event.what); }

  bool has_finished() const {
    return std::all_of(states_.begin(), states_.begin() + static_cast<std::ptrdiff_t>(count_),
                       [&](const RankState& state) { return rules_.has_finished(state); });
  }

  // The rank's own move of this index, in canonical order.
  RankEvent move(std::size_t rank, unsigned index) const {
    const Enabled& enabled = enabled_[rank];
    constexpr unsigned kBeforeHooks = (1U << static_cast<unsigned>(EventKind::hook)) - 1;
    unsigned kinds = enabled.kinds & kBeforeHooks;
    const auto before = static_cast<unsigned>(std::popcount(kinds));
    const auto hooks = static_cast<unsigned>(std::popcount(enabled.hooks));
    if (index >= before && index < before + hooks) {
      std::uint64_t left = enabled.hooks;
      for (index -= before; index > 0; --index) left &= left - 1;
      return {EventKind::hook, static_cast<std::uint8_t>(std::countr_zero(left))};
    }
    if (index >= before) {
      index -= before + hooks;
      kinds = enabled.kinds & ~kBeforeHooks;
    }
    for (; index > 0; --index) kinds &= kinds - 1;
    return {static_cast<EventKind>(std::countr_zero(kinds))};
  }

  Property step(std::size_t rank, RankEvent event) {
    RankState& state = states_[rank];
    Property violated = rules_.step(state, event);
    if (event.kind == EventKind::launch) {
      if (rules_.has_tags() && is_mismatched(rank)) violated = Property::a4;
      joined_ = 255;
      for (std::size_t i = 0; i < count_; ++i) joined_ = std::min(joined_, states_[i].launched);
    }
    look(rank);
    return violated;
  }

 private:
  void look(std::size_t rank) {
    enabled_[rank] = rules_.enabled(states_[rank]);
    moves_[rank] = enabled_[rank].count();
  }

  bool is_mismatched(std::size_t rank) const {
    const unsigned slot = states_[rank].launched - 1U;
    const auto tag = [&](std::size_t of) { return states_[of].tags >> 4 * slot & 15U; };
    for (std::size_t other = 0; other < count_; ++other) {
      if (states_[other].launched > slot && tag(other) != tag(rank)) return true;
    }
    return false;
  }

  const RankRules& rules_;
  std::size_t count_;
  std::array<RankState, kRanksMax> states_{};
  std::array<Enabled, kRanksMax> enabled_{};
  std::array<unsigned, kRanksMax> moves_{};
  std::uint8_t joined_ = 0;
};

}  // namespace zeroproof::zero_epilogue

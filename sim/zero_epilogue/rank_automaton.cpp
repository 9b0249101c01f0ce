#include "sim/zero_epilogue/rank_automaton.h"

#include <fmt/format.h>

#include <array>
#include <bit>

namespace zeroproof::zero_epilogue {
namespace {

std::uint64_t mixed(std::uint64_t word) {
  word ^= word >> 32;
  word *= 0x9E3779B97F4A7C15ULL;
  word ^= word >> 29;
  return word * 0xBF58476D1CE4E5B9ULL;
}

std::uint64_t hash_of(const RankState& state) {
  const std::array<std::uint8_t, 8> small = {
      state.launched,
      state.completed,
      state.pass,
      state.epilogues,
      state.ready,
      state.spine,
      static_cast<std::uint8_t>(state.interface),
      static_cast<std::uint8_t>(state.is_queued * 2 + state.is_descending)};
  std::uint64_t word = 0;
  for (const std::uint8_t byte : small) word = word << 8 | byte;
  return mixed(mixed(state.fired ^ 0x5851F42D4C957F2DULL) ^ word) ^ mixed(state.tags + 1);
}

}  // namespace

// Breadth-first closure; completions are allowed as soon as something is in flight.
class RankAutomaton::Builder {
 public:
  explicit Builder(const RankRules& rules) : rules_(rules), slots_(1024, kNone) {}

  Result<RankAutomaton> build() {
    number_of(RankState{});
    for (LocalId id = 0; id < made_.states_.size(); ++id) {
      if (made_.states_.size() > kStatesMax) {
        return fail(ErrorCode::usage,
                    fmt::format("zero_epilogue: more than {} states a rank; lower N, K, or search "
                                "with --scheduler random or pct:D",
                                kStatesMax));
      }
      expand(id);
    }
    made_.first_move_.push_back(static_cast<std::uint32_t>(made_.moves_.size()));
    return std::move(made_);
  }

 private:
  void expand(LocalId id) {
    const RankState state = made_.states_[id];
    const Enabled enabled = rules_.enabled(state);
    LocalFacts facts{.launched = state.launched,
                     .completed = state.completed,
                     .has_ended = rules_.has_ended(state),
                     .has_finished = rules_.has_finished(state),
                     .waits_for_stream = rules_.waits_for_stream(state),
                     .may_launch = enabled.has(EventKind::launch),
                     .may_finish = enabled.has(EventKind::finish)};
    made_.first_move_.push_back(static_cast<std::uint32_t>(made_.moves_.size()));
    const auto take = [&](RankEvent event) { facts.may_violate |= add_move(state, event); };
    for (std::uint8_t kind = 0; kind < kEventKinds; ++kind) {
      const auto event = static_cast<EventKind>(kind);
      if (enabled.has(event)) take({event});
      if (event != EventKind::hook) continue;
      for (std::uint64_t left = enabled.hooks; left != 0; left &= left - 1) {
        take({event, static_cast<std::uint8_t>(std::countr_zero(left))});
      }
    }
    made_.facts_.push_back(facts);
    LocalId after = kNone;
    if (state.completed < state.launched) {
      RankState next = state;
      rules_.step(next, {EventKind::complete});
      after = number_of(next);
    }
    made_.after_completion_.push_back(after);
  }

  bool add_move(const RankState& state, RankEvent event) {
    RankState next = state;
    const Property violated = rules_.step(next, event);
    const bool is_violation = violated != Property::none;
    made_.moves_.push_back({is_violation ? kNone : number_of(next), event, violated});
    return is_violation;
  }

  LocalId number_of(const RankState& state) {
    std::size_t slot = hash_of(state) & (slots_.size() - 1);
    while (slots_[slot] != kNone) {
      if (made_.states_[slots_[slot]] == state) return slots_[slot];
      slot = (slot + 1) & (slots_.size() - 1);
    }
    const auto id = static_cast<LocalId>(made_.states_.size());
    slots_[slot] = id;
    made_.states_.push_back(state);
    if (made_.states_.size() * 2 > slots_.size()) grow();
    return id;
  }

  void grow() {
    slots_.assign(slots_.size() * 4, kNone);
    for (LocalId id = 0; id < made_.states_.size(); ++id) {
      std::size_t slot = hash_of(made_.states_[id]) & (slots_.size() - 1);
      while (slots_[slot] != kNone) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = id;
    }
  }

  const RankRules& rules_;
  RankAutomaton made_;
  std::vector<LocalId> slots_;  // looked up, never iterated
};

Result<RankAutomaton> RankAutomaton::make(const RankRules& rules) {
  return Builder(rules).build();
}

}  // namespace zeroproof::zero_epilogue

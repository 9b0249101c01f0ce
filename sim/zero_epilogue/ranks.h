#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/zero_epilogue/rank_automaton.h"

namespace zeroproof::zero_epilogue {

constexpr std::size_t kRanksMax = 8;

// A state of the whole model as one number: the local numbers of the ranks are its digits in the
// base of the automaton's size, rank 0 last. Exact: two states have two codes.
using Code = std::uint64_t;
using Digits = std::array<LocalId, kRanksMax>;

// All ranks together: the product of one automaton with itself, joined by the collectives.
class Ranks {
 public:
  // Code usage when the codes do not fit into 64 bits.
  static Result<Ranks> make(const Settings& settings);

  const RankRules& rules() const { return rules_; }
  const RankAutomaton& automaton() const { return automaton_; }
  std::size_t count() const { return rules_.settings().ranks; }
  // Codes are below this.
  Code code_space() const { return code_space_; }
  Code weight(std::size_t rank) const { return weights_[rank]; }

  Digits digits(Code code) const {
    Digits digits{};
    for (std::size_t rank = 0; rank < count(); ++rank) {
      digits[rank] = static_cast<LocalId>(code % automaton_.size());
      code /= automaton_.size();
    }
    return digits;
  }
  Code code(const Digits& digits) const {
    Code code = 0;
    for (std::size_t rank = count(); rank-- > 0;) code = code * automaton_.size() + digits[rank];
    return code;
  }
  // The code after `rank` went from local number `from` to `to`.
  Code moved(Code code, std::size_t rank, LocalId from, LocalId to) const {
    return code + (static_cast<Code>(to) - from) * weights_[rank];
  }

  // Collectives that every rank has launched: those may complete.
  std::uint8_t joined(const Digits& digits) const {
    std::uint8_t least = 255;
    for (std::size_t rank = 0; rank < count(); ++rank) {
      least = std::min(least, automaton_.facts(digits[rank]).launched);
    }
    return least;
  }
  bool may_complete(const Digits& digits, std::size_t rank) const {
    return automaton_.facts(digits[rank]).completed < joined(digits);
  }
  bool has_finished(const Digits& digits) const;

  // What the move violates, A4 included.
  Property violated_by(const Digits& digits, std::size_t rank, const Move& move) const {
    const bool may_differ = rules_.has_tags() && move.event.kind == EventKind::launch;
    return may_differ && is_mismatched(digits, rank, move) ? Property::a4 : move.violated;
  }

 private:
  Ranks(const RankRules& rules, RankAutomaton automaton)
      : rules_(rules), automaton_(std::move(automaton)) {}
  bool is_mismatched(const Digits& digits, std::size_t rank, const Move& move) const;

  RankRules rules_;
  RankAutomaton automaton_;
  std::array<Code, kRanksMax> weights_{};
  Code code_space_ = 1;
};

}  // namespace zeroproof::zero_epilogue

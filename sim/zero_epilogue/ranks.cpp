#include "sim/zero_epilogue/ranks.h"

#include <fmt/format.h>

#include <limits>

namespace zeroproof::zero_epilogue {

Result<Ranks> Ranks::make(const Settings& settings) {
  RankRules rules(settings);
  auto automaton = RankAutomaton::make(rules);
  if (!automaton) return tl::unexpected(automaton.error());
  Ranks ranks(rules, std::move(*automaton));
  for (std::size_t rank = 0; rank < ranks.count(); ++rank) {
    ranks.weights_[rank] = ranks.code_space_;
    if (ranks.code_space_ > std::numeric_limits<Code>::max() / ranks.automaton_.size()) {
      return fail(ErrorCode::usage,
                  fmt::format("zero_epilogue: {} ranks of {} local states do not fit into 64 bits; "
                              "lower P, N or K, or search with --scheduler random or pct:D",
                              ranks.count(), ranks.automaton_.size()));
    }
    ranks.code_space_ *= ranks.automaton_.size();
  }
  return ranks;
}

bool Ranks::has_finished(const Digits& digits) const {
  for (std::size_t rank = 0; rank < count(); ++rank) {
    if (!automaton_.facts(digits[rank]).has_finished) return false;
  }
  return true;
}

// Some other rank has launched this collective already, with another bucket.
bool Ranks::is_mismatched(const Digits& digits, std::size_t rank, const Move& move) const {
  const unsigned slot = automaton_.facts(digits[rank]).launched;
  const auto tag = [&](LocalId id) { return automaton_.state(id).tags >> 4 * slot & 15U; };
  for (std::size_t other = 0; other < count(); ++other) {
    const bool has_launched = automaton_.facts(digits[other]).launched > slot;
    if (other != rank && has_launched && tag(digits[other]) != tag(move.next)) return true;
  }
  return false;
}

}  // namespace zeroproof::zero_epilogue

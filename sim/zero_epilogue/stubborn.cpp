#include "sim/zero_epilogue/stubborn.h"

#include <bit>

namespace zeroproof::zero_epilogue {

ProcessSet Stubborn::needed_by_engine(std::size_t rank) const {
  const LocalFacts& own = facts(rank);
  ProcessSet needed = 0;
  if (own.waits_for_stream) needed |= stream_of(rank);
  // An epilogue that does not wait reads what a completion changes.
  if (own.may_finish && ranks_.rules().returns_unwaited()) needed |= stream_of(rank);
  if (own.may_launch && ranks_.rules().has_tags()) {
    // A rank that has not launched this collective yet may give it another bucket.
    for (std::size_t other = 0; other < ranks_.count(); ++other) {
      if (facts(other).launched <= own.launched) needed |= engine_of(other);
    }
  }
  return needed;
}

ProcessSet Stubborn::needed_by_stream(std::size_t rank) const {
  const std::uint8_t completed = facts(rank).completed;
  if (completed == ranks_.rules().collectives()) return 0;
  for (std::size_t other = 0; other < ranks_.count(); ++other) {
    if (facts(other).launched <= completed) return engine_of(other);
  }
  return ranks_.rules().returns_unwaited() ? engine_of(rank) : 0;
}

ProcessSet Stubborn::closure(ProcessSet seed) const {
  ProcessSet closed = 0;
  for (ProcessSet open = seed; open != 0;) {
    const auto process = static_cast<std::size_t>(std::countr_zero(open));
    closed |= ProcessSet{1} << process;
    open |= process < kRanksMax ? needed_by_engine(process) : needed_by_stream(process - kRanksMax);
    open &= ~closed;
  }
  return closed;
}

bool Stubborn::has_enabled(ProcessSet set) const {
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    if ((set & engine_of(rank)) != 0 && has_moves(rank)) return true;
    if ((set & stream_of(rank)) != 0 && ranks_.may_complete(digits_, rank)) return true;
  }
  return false;
}

// A completion alone, then one rank's engine alone, that of a single event first, so that a rank
// is done before the next begins; then what is left.
ProcessSet Stubborn::smallest() const {
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    if (!ranks_.may_complete(digits_, rank)) continue;
    const ProcessSet set = closure(stream_of(rank));
    if (set == stream_of(rank)) return set;
  }
  ProcessSet alone = 0;
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    const std::size_t moves = ranks_.automaton().moves(digits_[rank]).size();
    if (moves == 0 || (alone != 0 && moves > 1)) continue;
    const ProcessSet set = closure(engine_of(rank));
    if (set != engine_of(rank)) continue;
    if (moves == 1) return set;
    alone = set;
  }
  if (alone != 0) return alone;
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    const ProcessSet set = closure(engine_of(rank));
    if (has_enabled(set)) return set;
  }
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    const ProcessSet set = closure(stream_of(rank));
    if (has_enabled(set)) return set;
  }
  return 0;
}

}  // namespace zeroproof::zero_epilogue

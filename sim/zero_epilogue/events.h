#pragma once

#include "sim/zero_epilogue/stubborn.h"

namespace zeroproof::zero_epilogue {

constexpr ProcessSet kAllProcesses = ~ProcessSet{0};

// Calls take(event, violated, next code) for the enabled events of the processes in `set`, in
// canonical order; the code is meaningless when the event violates.
template <class Take>
void for_each_event(const Ranks& ranks, Code code, ProcessSet set, Take take) {
  const Digits digits = ranks.digits(code);
  for (std::size_t rank = 0; rank < ranks.count(); ++rank) {
    const auto number = static_cast<std::uint8_t>(rank);
    if ((set & engine_of(rank)) != 0) {
      for (const Move& move : ranks.automaton().moves(digits[rank])) {
        take(Event{number, move.event}, ranks.violated_by(digits, rank, move),
             ranks.moved(code, rank, digits[rank], move.next));
      }
    }
    if ((set & stream_of(rank)) != 0 && ranks.may_complete(digits, rank)) {
      const LocalId after = ranks.automaton().after_completion(digits[rank]);
      take(Event{number, {EventKind::complete}}, Property::none,
           ranks.moved(code, rank, digits[rank], after));
    }
  }
}

}  // namespace zeroproof::zero_epilogue

#include "sim/zero_epilogue/full_search.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <vector>

namespace zeroproof::zero_epilogue {
namespace {

// What the hot loop needs of a local state: sixteen bytes.
struct Row {
  std::uint32_t first_delta = 0;
  std::uint16_t deltas = 0;
  std::uint8_t launched = 0;
  std::uint8_t completed = 0;
  std::int32_t completion = 0;  // 0: none in flight
  bool is_slow = false;         // a move violates, or may together with another rank
  bool is_leaving = false;      // a move leads to another side
};

// Which way each local state was come by: 1 where the second of the two ways that every rank
// chooses between at its beginning leads there and the first does not. No move leads from one side
// to the other but that choice.
std::vector<std::uint8_t> sides_of(const RankAutomaton& automaton) {
  std::vector<std::uint8_t> ways(automaton.size());
  const auto choices = automaton.moves(0);
  for (std::size_t i = 0; i < choices.size(); ++i)
    if (choices[i].next != RankAutomaton::kNone) ways[choices[i].next] |= i == 1 ? 2 : 1;
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (LocalId id = 1; id < automaton.size(); ++id) {
      const auto join = [&](LocalId next) {
        if (next == RankAutomaton::kNone || (ways[id] & ~ways[next]) == 0) return;
        ways[next] |= ways[id];
        has_grown = true;
      };
      join(automaton.after_completion(id));
      for (const Move& move : automaton.moves(id)) join(move.next);
    }
  }
  for (std::uint8_t& way : ways) way = way == 2 ? 1 : 0;
  return ways;
}

// The local states in places of their own: those of one side after those of the other, from a
// multiple of eight on, so that states that differ in a rank's side share no byte of a bitmap.
class Places {
 public:
  explicit Places(const RankAutomaton& automaton) : sides_(sides_of(automaton)) {
    places_.resize(automaton.size());
    for (std::uint8_t side = 0; side < 2; ++side) {
      for (LocalId id = 0; id < automaton.size(); ++id) {
        if (sides_[id] != side) continue;
        places_[id] = static_cast<LocalId>(ids_.size());
        ids_.push_back(id);
      }
      while (ids_.size() % CodeBitmap::kCodesTogether != 0) ids_.push_back(RankAutomaton::kNone);
    }
  }

  std::size_t size() const { return ids_.size(); }
  LocalId place(LocalId id) const { return places_[id]; }
  LocalId id(LocalId place) const { return ids_[place]; }
  std::uint8_t side(LocalId id) const { return sides_[id]; }

 private:
  std::vector<std::uint8_t> sides_;
  std::vector<LocalId> places_;  // by local state
  std::vector<LocalId> ids_;     // by place
};

// Codes are those of Ranks with places for digits.
class FullSpace {
 public:
  explicit FullSpace(const Ranks& ranks) : ranks_(ranks), places_(ranks.automaton()) {
    rows_.resize(places_.size());
    for (LocalId id = 0; id < ranks.automaton().size(); ++id) rows_[places_.place(id)] = row_of(id);
    weights_[0] = 1;
    for (std::size_t rank = 1; rank < ranks.count(); ++rank)
      weights_[rank] = weights_[rank - 1] * places_.size();
  }

  class Worker {
   public:
    explicit Worker(const FullSpace& space) : space_(space) {}

    void expand(std::uint64_t code, std::uint64_t depth, SuccessorBuffer& successors) {
      const std::size_t count = space_.ranks_.count();
      const Digits places = space_.places(code);
      unsigned joined = 255;
      bool is_slow = false;
      for (std::size_t rank = 0; rank < count; ++rank) {
        const Row& row = space_.rows_[places[rank]];
        joined = std::min<unsigned>(joined, row.launched);
        is_slow |= row.is_slow || (row.is_leaving && space_.parts_ > 1);
      }
      if (is_slow) return expand_slowly(code, places, depth, successors);
      const std::size_t before = successors.size();
      for (std::size_t rank = 0; rank < count; ++rank) {
        const Row& row = space_.rows_[places[rank]];
        const Code weight = space_.weights_[rank];
        const std::int32_t* const deltas = space_.deltas_.data() + row.first_delta;
        for (unsigned i = 0; i < row.deltas; ++i) {
          successors.add(code + static_cast<Code>(std::int64_t{deltas[i]}) * weight);
        }
        if (row.completed < joined) {
          successors.add(code + static_cast<Code>(std::int64_t{row.completion}) * weight);
        }
      }
      if (successors.size() == before) judge_end(space_.digits(places), depth);
    }

    const Findings& findings() const { return findings_; }

   private:
    void expand_slowly(Code code, const Digits& places, std::uint64_t depth,
                       SuccessorBuffer& successors) {
      const Ranks& ranks = space_.ranks_;
      const Digits digits = space_.digits(places);
      const auto send = [&](std::size_t rank, LocalId next) {
        const Code to = code + (static_cast<Code>(space_.places_.place(next)) - places[rank]) *
                                   space_.weights_[rank];
        successors.send(space_.part_of(to), to);
      };
      bool may_move = false;
      for (std::size_t rank = 0; rank < ranks.count(); ++rank) {
        for (const Move& move : ranks.automaton().moves(digits[rank])) {
          may_move = true;
          const Property violated = ranks.violated_by(digits, rank, move);
          if (violated != Property::none) {
            findings_.add(violated, depth + 1);
          } else {
            send(rank, move.next);
          }
        }
        if (ranks.may_complete(digits, rank)) {
          may_move = true;
          send(rank, ranks.automaton().after_completion(digits[rank]));
        }
      }
      if (!may_move) judge_end(digits, depth);
    }

    void judge_end(const Digits& digits, std::uint64_t depth) {
      if (!space_.ranks_.has_finished(digits)) findings_.add(Property::a5, depth);
    }

    const FullSpace& space_;
    Findings findings_;
  };

  // About how many codes there are; they may be more than a word can count.
  double codes() const {
    return std::pow(static_cast<double>(places_.size()), static_cast<double>(ranks_.count()));
  }
  std::uint64_t code_space() const { return weights_[ranks_.count() - 1] * places_.size(); }
  std::uint64_t initial() const {
    std::uint64_t code = 0;
    for (std::size_t rank = 0; rank < ranks_.count(); ++rank)
      code += places_.place(0) * weights_[rank];
    return code;
  }
  std::size_t split(std::size_t workers) {
    parts_ = std::min(workers, std::size_t{1} << ranks_.count());
    return parts_;
  }
  // By the sides that its ranks are on, the last rank first, so that two parts are the lower and
  // the upper half of the codes. No move goes from one part to another but the ranks' first.
  std::size_t part_of(Code code) const {
    if (parts_ == 1) return 0;
    const Digits digits = this->digits(places(code));
    std::size_t sides = 0;
    for (std::size_t rank = 0; rank < ranks_.count(); ++rank)
      sides |= std::size_t{places_.side(digits[rank])} << (ranks_.count() - 1 - rank);
    return sides % parts_;
  }
  Worker make_worker() const { return Worker(*this); }
  void merge(const Worker& worker) { findings_.merge(worker.findings()); }
  std::uint64_t violating_transitions() const { return findings_.violating_events(); }
  const Findings& findings() const { return findings_; }

 private:
  Digits places(Code code) const {
    Digits places{};
    for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
      places[rank] = static_cast<LocalId>(code % places_.size());
      code /= places_.size();
    }
    return places;
  }
  Digits digits(const Digits& places) const {
    Digits digits{};
    for (std::size_t rank = 0; rank < ranks_.count(); ++rank)
      digits[rank] = places_.id(places[rank]);
    return digits;
  }

  Row row_of(LocalId id) {
    const RankAutomaton& automaton = ranks_.automaton();
    const LocalFacts& facts = automaton.facts(id);
    Row row{.first_delta = static_cast<std::uint32_t>(deltas_.size()),
            .launched = facts.launched,
            .completed = facts.completed,
            .is_slow = facts.may_violate || (ranks_.rules().has_tags() && facts.may_launch)};
    const auto delta = [&](LocalId next) {
      row.is_leaving |= places_.side(next) != places_.side(id);
      return static_cast<std::int32_t>(places_.place(next) - places_.place(id));
    };
    for (const Move& move : automaton.moves(id)) {
      if (move.violated != Property::none) continue;
      deltas_.push_back(delta(move.next));
      ++row.deltas;
    }
    const LocalId after = automaton.after_completion(id);
    if (after != RankAutomaton::kNone) row.completion = delta(after);
    return row;
  }

  const Ranks& ranks_;
  Places places_;
  std::array<Code, kRanksMax> weights_{};
  std::size_t parts_ = 1;
  std::vector<Row> rows_;  // by place
  std::vector<std::int32_t> deltas_;
  Findings findings_;
};

}  // namespace

Result<FullResult> search_all(const Ranks& ranks, std::size_t workers,
                              const std::function<bool()>& should_stop) {
  FullSpace space(ranks);
  const double bytes = space.codes() / 8;
  if (bytes > static_cast<double>(kBytesMax)) {
    return fail(
        ErrorCode::usage,
        fmt::format("zero_epilogue: the full search needs {:.0f} MiB, at most {}; leave out "
                    "--no-reduction, or lower P or N",
                    bytes / (1 << 20), kBytesMax >> 20));
  }
  LayeredSearch<FullSpace> search(space, workers);
  FullResult result;
  result.counts = search.run(should_stop);
  result.findings = space.findings();
  return result;
}

}  // namespace zeroproof::zero_epilogue

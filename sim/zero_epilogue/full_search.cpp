#include "sim/zero_epilogue/full_search.h"

#include <fmt/format.h>

namespace zeroproof::zero_epilogue {
namespace {

// What the hot loop needs of a local state: sixteen bytes.
struct Row {
  std::uint32_t first_delta = 0;
  std::uint16_t deltas = 0;
  std::uint8_t launched = 0;
  std::uint8_t completed = 0;
  std::int32_t completion = 0;  // 0: nothing in flight
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

class FullSpace {
 public:
  explicit FullSpace(const Ranks& ranks) : ranks_(ranks), sides_(sides_of(ranks.automaton())) {
    const RankAutomaton& automaton = ranks.automaton();
    for (LocalId id = 0; id < automaton.size(); ++id) rows_.push_back(row_of(automaton, id));
  }

  class Worker {
   public:
    explicit Worker(const FullSpace& space) : space_(space) {}

    void expand(std::uint64_t code, std::uint64_t depth, SuccessorBuffer& successors) {
      const Ranks& ranks = space_.ranks_;
      const Digits digits = ranks.digits(code);
      unsigned joined = 255;
      bool is_slow = false;
      for (std::size_t rank = 0; rank < ranks.count(); ++rank) {
        const Row& row = space_.rows_[digits[rank]];
        joined = std::min<unsigned>(joined, row.launched);
        is_slow |= row.is_slow || (row.is_leaving && space_.parts_ > 1);
      }
      if (is_slow) return expand_slowly(code, digits, depth, successors);
      const std::size_t before = successors.size();
      for (std::size_t rank = 0; rank < ranks.count(); ++rank) {
        const Row& row = space_.rows_[digits[rank]];
        const Code weight = ranks.weight(rank);
        const std::int32_t* const deltas = space_.deltas_.data() + row.first_delta;
        for (unsigned i = 0; i < row.deltas; ++i) {
          successors.add(code + static_cast<Code>(std::int64_t{deltas[i]}) * weight);
        }
        if (row.completed < joined) {
          successors.add(code + static_cast<Code>(std::int64_t{row.completion}) * weight);
        }
      }
      if (successors.size() == before) judge_end(digits, depth);
    }

    const Findings& findings() const { return findings_; }

   private:
    void expand_slowly(Code code, const Digits& digits, std::uint64_t depth,
                       SuccessorBuffer& successors) {
      const Ranks& ranks = space_.ranks_;
      bool may_move = false;
      for (std::size_t rank = 0; rank < ranks.count(); ++rank) {
        for (const Move& move : ranks.automaton().moves(digits[rank])) {
          may_move = true;
          const Property violated = ranks.violated_by(digits, rank, move);
          if (violated != Property::none) {
            findings_.add(violated, depth + 1);
          } else {
            const Code next = ranks.moved(code, rank, digits[rank], move.next);
            successors.send(space_.part_of(next), next);
          }
        }
        if (ranks.may_complete(digits, rank)) {
          may_move = true;
          const LocalId after = ranks.automaton().after_completion(digits[rank]);
          const Code next = ranks.moved(code, rank, digits[rank], after);
          successors.send(space_.part_of(next), next);
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

  std::uint64_t code_space() const { return ranks_.code_space(); }
  std::uint64_t initial() const { return 0; }
  std::size_t split(std::size_t workers) {
    parts_ = std::min(workers, std::size_t{1} << ranks_.count());
    return parts_;
  }
  // By the sides that its ranks are on: no move goes from one part to another but their first.
  std::size_t part_of(Code code) const {
    if (parts_ == 1) return 0;
    const Digits digits = ranks_.digits(code);
    std::size_t sides = 0;
    for (std::size_t rank = 0; rank < ranks_.count(); ++rank)
      sides |= std::size_t{sides_[digits[rank]]} << rank;
    return sides % parts_;
  }
  Worker make_worker() const { return Worker(*this); }
  void merge(const Worker& worker) { findings_.merge(worker.findings()); }
  std::uint64_t violating_transitions() const { return findings_.violating_events(); }
  const Findings& findings() const { return findings_; }

 private:
  Row row_of(const RankAutomaton& automaton, LocalId id) {
    const LocalFacts& facts = automaton.facts(id);
    Row row{.first_delta = static_cast<std::uint32_t>(deltas_.size()),
            .launched = facts.launched,
            .completed = facts.completed,
            .is_slow = facts.may_violate || (ranks_.rules().has_tags() && facts.may_launch)};
    for (const Move& move : automaton.moves(id)) {
      if (move.violated != Property::none) continue;
      row.is_leaving |= sides_[move.next] != sides_[id];
      deltas_.push_back(static_cast<std::int32_t>(move.next - id));
      ++row.deltas;
    }
    const LocalId after = automaton.after_completion(id);
    if (after == RankAutomaton::kNone) return row;
    row.completion = static_cast<std::int32_t>(after - id);
    row.is_leaving |= sides_[after] != sides_[id];
    return row;
  }

  const Ranks& ranks_;
  std::vector<std::uint8_t> sides_;  // by local state
  std::size_t parts_ = 1;
  std::vector<Row> rows_;
  std::vector<std::int32_t> deltas_;
  Findings findings_;
};

}  // namespace

Result<FullResult> search_all(const Ranks& ranks, std::size_t workers,
                              const std::function<bool()>& should_stop) {
  const std::uint64_t bytes = ranks.code_space() / 8 * std::max<std::size_t>(workers, 1);
  if (bytes > kBytesMax) {
    return fail(ErrorCode::usage,
                fmt::format("zero_epilogue: the full search needs {} MiB, at most {}; leave out "
                            "--no-reduction, or lower P, N or --workers",
                            bytes >> 20, kBytesMax >> 20));
  }
  FullSpace space(ranks);
  LayeredSearch<FullSpace> search(space, workers);
  FullResult result;
  result.counts = search.run(should_stop);
  result.findings = space.findings();
  return result;
}

}  // namespace zeroproof::zero_epilogue

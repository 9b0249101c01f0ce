#include "sim/zero_epilogue/triples.h"

#include <bit>
#include <numeric>

namespace zeroproof::zero_epilogue {
namespace {

constexpr std::size_t kWordsMax = std::size_t{1} << 23;  // 64 MiB

using Bits = std::vector<std::uint64_t>;

std::size_t words_of(std::size_t bits) {
  return (bits + 63) / 64;
}
void set(Bits& bits, std::size_t place) {
  bits[place / 64] |= std::uint64_t{1} << (place % 64);
}
bool has(const Bits& bits, std::size_t place) {
  return (bits[place / 64] >> (place % 64) & 1) != 0;
}

// Whether `into` grew.
bool join(Bits& into, const Bits& from) {
  std::uint64_t fresh = 0;
  for (std::size_t i = 0; i < into.size(); ++i) {
    fresh |= from[i] & ~into[i];
    into[i] |= from[i];
  }
  return fresh != 0;
}

std::uint64_t count(const Bits& bits) {
  return std::accumulate(bits.begin(), bits.end(), std::uint64_t{0},
                         [](std::uint64_t sum, std::uint64_t word) {
                           return sum + static_cast<std::uint64_t>(std::popcount(word));
                         });
}

// Of each local state: what a way there can have on it, names first, then pairs of them.
class Ways {
 public:
  Ways(const RankAutomaton& automaton, const EventNames& names)
      : automaton_(automaton),
        names_(names),
        past_(automaton.size(), Bits(words_of(names.size()))),
        pairs_(automaton.size(), Bits(words_of(names.size() * names.size()))) {
    spread([this](LocalId id, LocalId next, std::optional<std::size_t> name) {
      Bits there = past_[id];
      if (name) set(there, *name);
      return join(past_[next], there);
    });
    spread([this](LocalId id, LocalId next, std::optional<std::size_t> name) {
      Bits there = pairs_[id];
      for (std::size_t before = 0; name && before < names_.size(); ++before)
        if (has(past_[id], before)) set(there, before * names_.size() + *name);
      return join(pairs_[next], there);
    });
  }

  const Bits& pairs(LocalId id) const { return pairs_[id]; }

 private:
  // Along every move, again and again until no set grows.
  template <class Grow>
  void spread(Grow grow) {
    for (bool has_grown = true; has_grown;) {
      has_grown = false;
      for (LocalId id = 0; id < automaton_.size(); ++id) {
        const LocalId completed = automaton_.after_completion(id);
        if (completed != RankAutomaton::kNone) has_grown |= grow(id, completed, std::nullopt);
        for (const Move& move : automaton_.moves(id))
          if (move.next != RankAutomaton::kNone && move.violated == Property::none)
            has_grown |= grow(id, move.next, names_.of(automaton_.state(id), move.event));
      }
    }
  }

  const RankAutomaton& automaton_;
  const EventNames& names_;
  std::vector<Bits> past_;
  std::vector<Bits> pairs_;
};

}  // namespace

Triples::Triples(std::size_t names, std::size_t ranks)
    : names_(names),
      orders_(ranks, Bits(words_of(names * names))),
      past_(ranks),
      seen_(ranks * names, Bits(words_of(names * names))) {}

std::optional<Triples> Triples::make(const RankAutomaton& automaton, const EventNames& names,
                                     std::size_t ranks) {
  const std::size_t words = words_of(names.size() * names.size());
  if (words * (automaton.size() + ranks * names.size()) > kWordsMax) return std::nullopt;
  Triples triples(names.size(), ranks);
  triples.find_feasible(automaton, names);
  return triples;
}

void Triples::find_feasible(const RankAutomaton& automaton, const EventNames& names) {
  const Ways ways(automaton, names);
  std::vector<Bits> before(names_, Bits(words_of(names_ * names_)));
  for (LocalId id = 0; id < automaton.size(); ++id)
    for (const Move& move : automaton.moves(id))
      join(before[names.of(automaton.state(id), move.event)], ways.pairs(id));
  for (const Bits& pairs : before) feasible_ += count(pairs);
}

void Triples::begin() {
  for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
    orders_[rank].assign(orders_[rank].size(), 0);
    past_[rank].clear();
  }
}

void Triples::add(std::size_t rank, std::size_t name) {
  join(seen_[rank * names_ + name], orders_[rank]);
  for (const std::size_t before : past_[rank]) set(orders_[rank], before * names_ + name);
  past_[rank].push_back(name);
}

std::uint64_t Triples::seen() const {
  std::uint64_t sum = 0;
  for (const Bits& pairs : seen_) sum += count(pairs);
  return sum;
}

}  // namespace zeroproof::zero_epilogue

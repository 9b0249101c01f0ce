#include "sim/zero_epilogue/walker.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <pcg_random.hpp>

#include "sim/zero_epilogue/event_names.h"
#include "sim/zero_epilogue/world.h"

namespace zeroproof::zero_epilogue {
namespace {

// Unbiased, by multiplication: the generator's own bounded draw divides twice.
std::uint32_t below(pcg32& random, std::uint32_t bound) {
  if (bound <= 1) return 0;
  for (;;) {
    const std::uint64_t product = std::uint64_t{random()} * bound;
    const auto low = static_cast<std::uint32_t>(product);
    if (low >= bound || low >= -bound % bound) return static_cast<std::uint32_t>(product >> 32);
  }
}

class Uniform {
 public:
  void begin(pcg32&) {}
  Event pick(const World& world, pcg32& random) {
    std::array<unsigned, kRanksMax> ends{};
    unsigned total = 0;
    for (std::size_t rank = 0; rank < world.ranks(); ++rank) {
      total += world.moves(rank) + (world.may_complete(rank) ? 1U : 0U);
      ends[rank] = total;
    }
    const unsigned drawn = below(random, total);
    std::size_t rank = 0;
    while (drawn >= ends[rank]) ++rank;
    const unsigned index = drawn - (rank == 0 ? 0 : ends[rank - 1]);
    const auto number = static_cast<std::uint8_t>(rank);
    if (index == world.moves(rank)) return {number, {EventKind::complete}};
    return {number, world.move(rank, index)};
  }
};

// Engines and streams have random priorities; at d-1 random places the one that runs is put last.
class Pct {
 public:
  Pct(std::size_t ranks, std::uint64_t events, std::uint32_t depth)
      : processes_(2 * ranks), events_(events), changes_(depth - 1) {}

  void begin(pcg32& random) {
    for (std::size_t i = 0; i < processes_; ++i) priorities_[i] = static_cast<std::int64_t>(i);
    for (std::size_t i = processes_; i > 1; --i) {
      std::swap(priorities_[i - 1], priorities_[below(random, static_cast<std::uint32_t>(i))]);
    }
    for (auto& change : changes_) change = below(random, static_cast<std::uint32_t>(events_));
    step_ = 0;
  }

  Event pick(const World& world, pcg32& random) {
    std::size_t best = highest(world);
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      if (changes_[i] != step_) continue;
      priorities_[best] = -1 - static_cast<std::int64_t>(i);
      best = highest(world);
    }
    ++step_;
    const std::size_t rank = best / 2;
    const auto number = static_cast<std::uint8_t>(rank);
    if (best % 2 == 1) return {number, {EventKind::complete}};
    const unsigned moves = world.moves(rank);
    return {number, world.move(rank, below(random, moves))};
  }

 private:
  std::size_t highest(const World& world) const {
    std::size_t best = processes_;
    for (std::size_t i = 0; i < processes_; ++i) {
      const bool can_run = i % 2 == 0 ? world.moves(i / 2) != 0 : world.may_complete(i / 2);
      if (can_run && (best == processes_ || priorities_[i] > priorities_[best])) best = i;
    }
    return best;
  }

  std::size_t processes_;
  std::uint64_t events_;
  std::vector<std::uint64_t> changes_;
  std::array<std::int64_t, 2 * kRanksMax> priorities_{};
  std::uint64_t step_ = 0;
};

// One that can go on: 2 r is the engine of rank r, 2 r + 1 its stream.
std::uint8_t any_process(const World& world, pcg32& random) {
  std::array<std::uint8_t, 2 * kRanksMax> open{};
  unsigned count = 0;
  for (std::size_t rank = 0; rank < world.ranks(); ++rank) {
    if (world.moves(rank) != 0) open[count++] = static_cast<std::uint8_t>(2 * rank);
    if (world.may_complete(rank)) open[count++] = static_cast<std::uint8_t>(2 * rank + 1);
  }
  return open[below(random, count)];
}

// How often each local state was met, over all ranks and schedules. A state that only few orders
// lead to is met rarely, and so is preferred whenever it is one event away.
class Novelty {
 public:
  explicit Novelty(const RankAutomaton& automaton)
      : automaton_(automaton), met_(automaton.size()) {}

  void begin(pcg32&) { at_.fill(0); }

  // A process at random, and of its moves the one to the least met state; of several the first
  // after a random one.
  Event pick(const World& world, pcg32& random) {
    const std::uint8_t process = any_process(world, random);
    const auto rank = static_cast<std::uint8_t>(process / 2);
    LocalId& at = at_[rank];
    if (process % 2 == 1) {
      at = automaton_.after_completion(at);
      return {rank, {EventKind::complete}};
    }
    const auto moves = automaton_.moves(at);
    const auto size = static_cast<std::uint32_t>(moves.size());
    std::uint32_t best = below(random, size);
    for (std::uint32_t i = 1, next = best + 1; i < size; ++i, ++next) {
      if (times_met(moves[next % size]) < times_met(moves[best])) best = next % size;
    }
    at = moves[best].next;
    if (at != RankAutomaton::kNone) ++met_[at];
    return {rank, moves[best].event};
  }

 private:
  std::uint32_t times_met(const Move& move) const {
    return move.next == RankAutomaton::kNone ? 0 : met_[move.next];
  }

  const RankAutomaton& automaton_;
  std::vector<std::uint32_t> met_;
  std::array<LocalId, kRanksMax> at_{};
};

// How often each event of a rank came before another that it could have done instead: of the events
// that are possible, the one that did so least often. Ties go to the first in an order
// that is drawn for each schedule, the canonical one for the first; so the schedule after a drawn
// one is its reverse, and two of them have every pair both ways.
class PairNovelty {
 public:
  PairNovelty(const Settings& settings, std::size_t ranks)
      : names_(settings), before_(ranks * names_.size() * names_.size()), order_(names_.size()) {
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
  }

  void begin(pcg32& random) {
    if (schedules_++ == 0) return;
    for (std::size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[below(random, static_cast<std::uint32_t>(i))]);
  }

  // A process at random, as in Novelty.
  Event pick(const World& world, pcg32& random) {
    const std::uint8_t process = any_process(world, random);
    const auto rank = static_cast<std::uint8_t>(process / 2);
    if (process % 2 == 1) return {rank, {EventKind::complete}};
    return {rank, pick_move(world, rank)};
  }

 private:
  RankEvent pick_move(const World& world, std::uint8_t rank) {
    const unsigned moves = world.moves(rank);
    std::array<std::size_t, kMovesMax> names{};
    for (unsigned i = 0; i < moves; ++i)
      names[i] = names_.of(world.state(rank), world.move(rank, i));
    unsigned best = 0;
    std::uint64_t least = ~std::uint64_t{0};
    for (unsigned i = 0; i < moves; ++i) {
      std::uint64_t times = 0;
      for (unsigned other = 0; other < moves; ++other)
        if (other != i) times += before(rank, names[i], names[other]);
      if (times > least || (times == least && order_[names[i]] > order_[names[best]])) continue;
      least = times;
      best = i;
    }
    for (unsigned other = 0; other < moves; ++other)
      if (other != best) ++before(rank, names[best], names[other]);
    return world.move(rank, best);
  }

  static constexpr std::size_t kMovesMax = 64 + kEventKinds;

  std::uint32_t& before(std::size_t rank, std::size_t first, std::size_t second) {
    return before_[(rank * names_.size() + first) * names_.size() + second];
  }

  EventNames names_;
  std::vector<std::uint32_t> before_;  // by rank, event and event
  std::vector<std::uint32_t> order_;   // of the names, for ties
  std::uint64_t schedules_ = 0;
};

template <class Picker>
WalkResult run_all(const RankRules& rules, const WalkOptions& options, Picker picker) {
  WalkResult result;
  std::vector<Event> events;
  pcg32 random;
  const World start(rules);
  while (result.schedules < options.schedules) {
    constexpr std::uint64_t kSchedulesBetweenStops = 256;
    result.was_stopped = result.schedules % kSchedulesBetweenStops == 0 && options.should_stop &&
                         options.should_stop();
    if (result.was_stopped) break;
    random.seed(options.seed, result.schedules);
    picker.begin(random);
    ++result.schedules;
    events.clear();
    World world = start;
    Property violated = Property::none;
    for (bool can_move = true; can_move && violated == Property::none;) {
      can_move = false;
      for (std::size_t rank = 0; rank < world.ranks() && !can_move; ++rank) {
        can_move = world.moves(rank) != 0 || world.may_complete(rank);
      }
      if (!can_move) {
        if (!world.has_finished()) violated = Property::a5;
        break;
      }
      events.push_back(picker.pick(world, random));
      violated = world.step(events.back().rank, events.back().what);
    }
    result.events += events.size();
    if (options.on_schedule) options.on_schedule(events);
    if (violated == Property::none) continue;
    result.findings.add(violated, events.size());
    if (!result.first) {
      result.first = violated;
      result.failing = events;
    }
    if (options.stops_at_first_finding) break;
  }
  return result;
}

PctCertificate certificate(const Settings& settings, const WalkOptions& options,
                           std::uint64_t schedules) {
  return {.tasks = 2 * std::uint64_t{settings.ranks},
          .steps = events_of(settings),
          .depth = static_cast<int>(options.depth),
          .runs = schedules};
}

}  // namespace

std::uint64_t events_of(const Settings& settings) {
  std::uint64_t layers = 0;
  if (settings.order == HookOrder::spine) layers = (settings.hooks - 1) / settings.leaves;
  const std::uint64_t pass = settings.hooks + layers + 2 + 2 * std::uint64_t{settings.buckets()};
  return settings.ranks * (1 + settings.passes * pass);
}

std::uint64_t own_events_of(const Settings& settings) {
  return events_of(settings) - std::uint64_t{settings.ranks} * settings.collectives();
}

Result<WalkResult> walk(const Settings& settings, const WalkOptions& options) {
  const RankRules rules(settings);
  if (options.kind == WalkKind::uniform) return run_all(rules, options, Uniform{});
  if (options.kind == WalkKind::pct) {
    const Pct pct(settings.ranks, events_of(settings), options.depth);
    WalkResult result = run_all(rules, options, pct);
    result.pct = certificate(settings, options, result.schedules);
    return result;
  }
  if (options.kind == WalkKind::pair_novelty)
    return run_all(rules, options, PairNovelty(settings, settings.ranks));
  const auto automaton = RankAutomaton::make(rules);
  if (!automaton) return tl::unexpected(automaton.error());
  return run_all(rules, options, Novelty(*automaton));
}

}  // namespace zeroproof::zero_epilogue

#include "sim/zero_epilogue/schedule_run.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "sim/zero_epilogue/world.h"

namespace zeroproof::zero_epilogue {
namespace {

using Order = std::array<std::uint8_t, kRanksMax>;

bool is_engine(const Event& event) {
  return event.what.kind != EventKind::complete;
}

class Runner {
 public:
  explicit Runner(const RankRules& rules) : world_(rules) {}

  void want(const Event& event, std::size_t index) {
    if (!world_.is_enabled(event)) {
      if (!run_.first_changed) run_.first_changed = index;
      prepare(event);
    }
    if (has_failed()) return;
    if (world_.is_enabled(event)) {
      step(event);
    } else if (const auto other = other_epilogue(event); other && world_.is_enabled(*other)) {
      step(*other);
    }
  }

  void run_on() {
    while (!has_failed()) {
      if (world_.enabled_count() == 0) {
        if (!world_.has_finished()) run_.violated = Property::a5;
        return;
      }
      step(world_.enabled_event(0));
    }
  }

  bool has_failed() const { return run_.violated != Property::none; }
  ScheduleRun take() { return std::move(run_); }

 private:
  void step(const Event& event) {
    run_.events.push_back(event);
    run_.violated = world_.step(event);
  }

  // What the rank has to do before.
  void prepare(const Event& event) {
    const std::uint8_t rank = event.rank;
    if (!is_engine(event)) return;
    if (world_.state(rank).interface == Interface::unset) step({rank, {EventKind::choose_counter}});
    while (!has_failed() && !world_.is_enabled(event) && world_.moves(rank) == 1 &&
           world_.is_enabled({rank, {EventKind::launch}})) {
      step({rank, {EventKind::launch}});
    }
    if (event.what.kind == EventKind::hook && !world_.is_enabled(event) && !has_failed() &&
        world_.is_enabled({rank, {EventKind::spine}})) {
      step({rank, {EventKind::spine}});
    }
    if (event.what.kind != EventKind::finish) return;
    while (!world_.is_enabled(event) && world_.may_complete(rank) && !has_failed()) {
      step({rank, {EventKind::complete}});
    }
  }

  static std::optional<Event> other_epilogue(Event event) {
    if (event.what.kind == EventKind::counter) {
      event.what.kind = EventKind::callback;
    } else if (event.what.kind == EventKind::callback) {
      event.what.kind = EventKind::counter;
    } else {
      return std::nullopt;
    }
    return event;
  }

  World world_;
  ScheduleRun run_;
};

// What the last event depends on: of each rank the engine's events up to the last needed launch,
// and the completions that a return waited for.
class Slice {
 public:
  Slice(const RankRules& rules, const std::vector<Event>& events) : rules_(rules), events_(events) {
    std::array<RankState, kRanksMax> states{};
    for (const Event& event : events) {
      RankState& state = states[event.rank];
      number_.push_back(event.what.kind == EventKind::complete ? state.completed : state.launched);
      rules.step(state, event.what);
    }
  }

  std::vector<Event> kept() {
    const Event& last = events_.back();
    std::vector<Event> kept{last};
    need(last, number_.back());
    if (last.what.kind == EventKind::launch) launches_.fill(number_.back() + 1U);
    for (std::size_t i = events_.size() - 1; i-- > 0;) {
      if (!is_needed(events_[i], number_[i])) continue;
      need(events_[i], number_[i]);
      kept.push_back(events_[i]);
    }
    std::reverse(kept.begin(), kept.end());
    return kept;
  }

 private:
  bool is_needed(const Event& event, std::uint32_t number) const {
    if (!is_engine(event)) return number < completions_[event.rank];
    const bool is_launch = event.what.kind == EventKind::launch;
    return has_engine_[event.rank] || (is_launch && number < launches_[event.rank]);
  }

  void need(const Event& event, std::uint32_t number) {
    if (!is_engine(event)) {
      for (auto& launches : launches_) launches = std::max(launches, number + 1);
      return;
    }
    has_engine_[event.rank] = true;
    if (event.what.kind != EventKind::finish || rules_.returns_unwaited()) return;
    completions_[event.rank] = std::max(completions_[event.rank], number);
  }

  const RankRules& rules_;
  const std::vector<Event>& events_;
  std::vector<std::uint32_t> number_;  // of the launch or completion; of a return, launches before
  std::array<bool, kRanksMax> has_engine_{};
  std::array<std::uint32_t, kRanksMax> launches_{};     // needed of each rank
  std::array<std::uint32_t, kRanksMax> completions_{};  // needed of each rank
};

// Rank 0 is to be `first`, the others by what they do.
Order order_of(const std::vector<Event>& events, std::uint8_t first, std::size_t ranks) {
  std::array<std::vector<RankEvent>, kRanksMax> lanes;
  for (const Event& event : events) {
    if (is_engine(event)) lanes[event.rank].push_back(event.what);
  }
  std::vector<std::uint8_t> sorted(ranks);
  std::iota(sorted.begin(), sorted.end(), std::uint8_t{0});
  std::sort(sorted.begin(), sorted.end(), [&](std::uint8_t left, std::uint8_t right) {
    if ((left == first) != (right == first)) return left == first;
    // Idle ranks last.
    if (lanes[left].empty() != lanes[right].empty()) return lanes[right].empty();
    return lanes[left] != lanes[right] ? lanes[left] < lanes[right] : left < right;
  });
  Order names{};
  for (std::size_t i = 0; i < ranks; ++i) names[sorted[i]] = static_cast<std::uint8_t>(i);
  return names;
}

// The least order that keeps the order of each process; what violates stays last. Empty when it
// gets stuck.
std::vector<Event> least_order(const RankRules& rules, const std::vector<Event>& events,
                               bool has_last) {
  World world(rules);
  std::array<std::vector<Event>, kRanksMax> engines;
  std::array<std::size_t, kRanksMax> at{};
  std::array<std::size_t, kRanksMax> completions{};
  const std::size_t size = events.size() - (has_last ? 1 : 0);
  for (std::size_t i = 0; i < size; ++i) {
    const Event& event = events[i];
    if (is_engine(event)) {
      engines[event.rank].push_back(event);
    } else {
      ++completions[event.rank];
    }
  }
  std::vector<Event> order;
  const auto take = [&](const Event& event) {
    order.push_back(event);
    return world.step(event) == Property::none;
  };
  for (std::uint8_t rank = 0; rank < world.ranks();) {
    const bool has_engine = at[rank] < engines[rank].size();
    bool is_good = true;
    if (has_engine && world.is_enabled(engines[rank][at[rank]])) {
      is_good = take(engines[rank][at[rank]++]);
      rank = 0;
    } else if (completions[rank] != 0 && world.may_complete(rank)) {
      --completions[rank];
      is_good = take({rank, {EventKind::complete}});
      rank = 0;
    } else {
      ++rank;
    }
    if (!is_good) return {};
  }
  if (order.size() != size) return {};
  if (has_last) order.push_back(events.back());
  return order;
}

bool fails_so(const RankRules& rules, Property property, const std::vector<Event>& events) {
  const bool is_hang = property == Property::a5;
  const ScheduleRun run = run_leniently(rules, events, is_hang ? AtEnd::run_on : AtEnd::stop);
  return run.violated == property && run.events == events;
}

}  // namespace

ScheduleRun run_leniently(const RankRules& rules, std::span<const Event> wanted, AtEnd at_end) {
  Runner runner(rules);
  for (std::size_t i = 0; i < wanted.size() && !runner.has_failed(); ++i) runner.want(wanted[i], i);
  if (at_end == AtEnd::run_on) runner.run_on();
  return runner.take();
}

std::vector<Event> canonical(const RankRules& rules, Property property,
                             const std::vector<Event>& failing, std::uint64_t& executions) {
  const bool is_hang = property == Property::a5;
  const std::size_t ranks = rules.settings().ranks;
  std::vector<Event> sliced = is_hang ? failing : Slice(rules, failing).kept();
  const auto fails = [&](const std::vector<Event>& events) {
    ++executions;
    return fails_so(rules, property, events);
  };
  if (sliced.size() != failing.size() && !fails(sliced)) sliced = failing;
  std::vector<Event> best;
  // Any of the ranks may be the one that launches last.
  for (std::uint8_t first = 0; first < ranks; ++first) {
    if (property != Property::a4 && !is_hang && first != sliced.back().rank) continue;
    std::vector<Event> named = sliced;
    if (property == Property::a4 && first != sliced.back().rank) {
      const auto last = std::find_if(named.rbegin(), named.rend(),
                                     [&](const Event& event) { return event.rank == first; });
      if (last == named.rend()) continue;
      std::rotate(last.base() - 1, last.base(), named.end());
    }
    const Order names = order_of(named, first, ranks);
    for (Event& event : named) event.rank = names[event.rank];
    named = least_order(rules, named, !is_hang);
    if (named.empty() || (!best.empty() && !is_simpler(named, best))) continue;
    if (fails(named)) best = named;
  }
  return best.empty() ? sliced : best;
}

std::vector<Event> cut_short(const RankRules& rules, Property property,
                             const std::vector<Event>& failing) {
  World world(rules);
  for (std::size_t i = 0; i + 1 < failing.size(); ++i) {
    for (unsigned index = 0; index < world.enabled_count(); ++index) {
      World probe = world;
      const Event event = world.enabled_event(index);
      if (probe.step(event) != property) continue;
      std::vector<Event> shorter(failing.begin(), failing.begin() + static_cast<std::ptrdiff_t>(i));
      shorter.push_back(event);
      return shorter;
    }
    world.step(failing[i]);
  }
  return failing;
}

bool is_simpler(const std::vector<Event>& left, const std::vector<Event>& right) {
  return left.size() != right.size() ? left.size() < right.size() : left < right;
}

}  // namespace zeroproof::zero_epilogue

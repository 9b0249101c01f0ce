#include "sim/zero_epilogue/constraints.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/search/code_table.h"
#include "sim/zero_epilogue/world.h"

namespace zeroproof::zero_epilogue {
namespace {

constexpr std::size_t kSubsetsMax = 4'000;  // tried, to show that no fewer do

// Whether the rank, as it is now, is where the event happens; of events of its kind.
bool is_here(const PlacedEvent& placed, const RankState& now) {
  const RankState& before = placed.before;
  switch (placed.event.what.kind) {
    case EventKind::launch:
      return now.launched == before.launched;
    case EventKind::complete:
      return now.completed == before.completed;
    case EventKind::spine:
      return now.pass == before.pass && now.spine == before.spine;
    case EventKind::counter:
    case EventKind::callback:
      return now.pass == before.pass && now.epilogues == before.epilogues;
    default:
      return now.pass == before.pass;
  }
}

bool is_behind(const PlacedEvent& placed, const RankState& now) {
  const RankState& before = placed.before;
  const bool is_later_pass = now.pass > before.pass;
  switch (placed.event.what.kind) {
    case EventKind::choose_counter:
      return now.interface == Interface::counter;
    case EventKind::choose_callback:
      return now.interface == Interface::callback;
    case EventKind::hook:
      return is_later_pass || (now.fired >> placed.event.what.hook & 1U) != 0;
    case EventKind::spine:
      return is_later_pass || now.spine > before.spine;
    case EventKind::counter:
    case EventKind::callback:
      return is_later_pass || now.epilogues > before.epilogues;
    case EventKind::launch:
      return now.launched > before.launched;
    case EventKind::finish:
      return is_later_pass;
    case EventKind::complete:
      break;
  }
  return now.completed > before.completed;
}

bool is_same(const PlacedEvent& left, const PlacedEvent& right) {
  return left.event == right.event && is_here(left, right.before);
}

// The orders that the schedule chose: what happened, and what could have happened instead.
std::vector<OrderConstraint> choices_of(const RankRules& rules, const std::vector<Event>& events) {
  std::vector<OrderConstraint> choices;
  World world(rules);
  for (const Event& event : events) {
    const PlacedEvent first{event, world.state(event.rank)};
    for (unsigned index = 0; index < world.enabled_count(); ++index) {
      const Event other = world.enabled_event(index);
      if (other == event) continue;
      const OrderConstraint choice{first, {other, world.state(other.rank)}};
      const bool is_known = std::any_of(choices.begin(), choices.end(), [&](const auto& known) {
        return is_same(known.first, choice.first) && is_same(known.second, choice.second);
      });
      if (!is_known) choices.push_back(choice);
    }
    world.step(event);
  }
  // What is left out first is at the front: orders between ranks.
  std::stable_partition(choices.begin(), choices.end(), [](const OrderConstraint& choice) {
    return choice.first.event.rank != choice.second.event.rank;
  });
  return choices;
}

class Sufficiency {
 public:
  Sufficiency(const Ranks& ranks, Property property, std::size_t states_max)
      : ranks_(ranks), property_(property), states_left_(states_max) {}

  bool has_given_up() const { return states_left_ == 0; }

  // Whether every complete schedule under the constraints violates the property, and one exists.
  bool holds(const std::vector<OrderConstraint>& constraints) {
    CodeTable met;
    std::vector<Code> open{0};
    met.insert(0);
    bool is_violated = false;
    while (!open.empty()) {
      if (states_left_ == 0) return false;
      --states_left_;
      const Code code = open.back();
      open.pop_back();
      const Digits digits = ranks_.digits(code);
      bool can_move = false;
      for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
        for (const Move& move : ranks_.automaton().moves(digits[rank])) {
          can_move = true;
          if (!is_allowed(constraints, digits, rank, move.event)) continue;
          const Property violated = ranks_.violated_by(digits, rank, move);
          if (violated == property_) is_violated = true;
          if (violated == property_) continue;
          if (violated != Property::none) return false;
          add(open, met, ranks_.moved(code, rank, digits[rank], move.next));
        }
        if (!ranks_.may_complete(digits, rank)) continue;
        can_move = true;
        if (!is_allowed(constraints, digits, rank, {EventKind::complete})) continue;
        const LocalId next = ranks_.automaton().after_completion(digits[rank]);
        add(open, met, ranks_.moved(code, rank, digits[rank], next));
      }
      if (can_move) continue;
      if (property_ != Property::a5 || ranks_.has_finished(digits)) return false;
      is_violated = true;
    }
    return is_violated;
  }

 private:
  static void add(std::vector<Code>& open, CodeTable& met, Code code) {
    if (met.insert(code).is_new) open.push_back(code);
  }

  bool is_allowed(const std::vector<OrderConstraint>& constraints, const Digits& digits,
                  std::size_t rank, RankEvent event) const {
    const RankAutomaton& automaton = ranks_.automaton();
    return std::all_of(constraints.begin(), constraints.end(), [&](const OrderConstraint& one) {
      const Event& second = one.second.event;
      const bool is_about = second.rank == rank && second.what == event &&
                            is_here(one.second, automaton.state(digits[rank]));
      return !is_about || is_behind(one.first, automaton.state(digits[one.first.event.rank]));
    });
  }

  const Ranks& ranks_;
  Property property_;
  std::size_t states_left_;
};

// Leaves out runs of constraints, long ones first, as long as the rest suffices.
void leave_out(Sufficiency& sufficiency, std::vector<OrderConstraint>& constraints) {
  for (std::size_t length = constraints.size(); length > 0; length /= 2) {
    for (std::size_t at = 0; at < constraints.size();) {
      std::vector<OrderConstraint> fewer = constraints;
      const auto from = fewer.begin() + static_cast<std::ptrdiff_t>(at);
      const std::size_t count = std::min(length, constraints.size() - at);
      fewer.erase(from, from + static_cast<std::ptrdiff_t>(count));
      if (sufficiency.holds(fewer)) {
        constraints = std::move(fewer);
      } else {
        at += length;
      }
    }
  }
}

// All choices of `count` of them, in dictionary order, until one suffices.
std::optional<std::vector<OrderConstraint>> sufficient_of(Sufficiency& sufficiency,
                                                          const std::vector<OrderConstraint>& all,
                                                          std::size_t count) {
  std::vector<std::size_t> picked(count);
  for (std::size_t i = 0; i < count; ++i) picked[i] = i;
  while (true) {
    std::vector<OrderConstraint> chosen;
    for (const std::size_t index : picked) chosen.push_back(all[index]);
    if (sufficiency.holds(chosen)) return chosen;
    std::size_t place = count;
    while (place > 0 && picked[place - 1] == all.size() - count + place - 1) --place;
    if (place == 0) return std::nullopt;
    ++picked[place - 1];
    for (std::size_t i = place; i < count; ++i) picked[i] = picked[i - 1] + 1;
  }
}

double subsets(std::size_t of, std::size_t count) {
  double subsets = 1;
  for (std::size_t i = 0; i < count; ++i)
    subsets = subsets * static_cast<double>(of - i) / static_cast<double>(i + 1);
  return subsets;
}

std::string text_of(const Settings& settings, const PlacedEvent& placed) {
  std::string text = event_text(placed.event, placed.before);
  const EventKind kind = placed.event.what.kind;
  const bool is_epilogue = kind == EventKind::counter || kind == EventKind::callback;
  if (is_epilogue && placed.before.epilogues > 0) text += ", once more,";
  const bool has_number = kind == EventKind::launch || kind == EventKind::complete;
  if (settings.passes == 1 || has_number) return text;
  return fmt::format("{} in pass {}", text, placed.before.pass + 1);
}

}  // namespace

std::optional<OrderConstraints> least_constraints(const Ranks& ranks, const Counterexample& failing,
                                                  std::size_t states_max) {
  Sufficiency sufficiency(ranks, failing.property, states_max);
  const std::vector<OrderConstraint> choices = choices_of(ranks.rules(), failing.events);
  OrderConstraints least{choices, true};
  if (!sufficiency.holds(choices)) return std::nullopt;
  leave_out(sufficiency, least.constraints);
  for (std::size_t count = 0; count < least.constraints.size() && least.is_least; ++count) {
    least.is_least = subsets(choices.size(), count) <= static_cast<double>(kSubsetsMax);
    if (!least.is_least) break;
    if (auto fewer = sufficient_of(sufficiency, choices, count)) least.constraints = *fewer;
  }
  if (sufficiency.has_given_up()) return std::nullopt;
  return least;
}

std::string constraint_text(const Settings& settings, const OrderConstraint& constraint) {
  return fmt::format("{} before {}", text_of(settings, constraint.first),
                     text_of(settings, constraint.second));
}

}  // namespace zeroproof::zero_epilogue

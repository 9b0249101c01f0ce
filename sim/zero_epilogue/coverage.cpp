#include "sim/zero_epilogue/coverage.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/zero_epilogue/full_search.h"

namespace zeroproof::zero_epilogue {
namespace {

constexpr Code kCountedMax = Code{1} << 30;  // codes, when all states are counted
constexpr std::size_t kLocalStatesMax = 200'000;

std::vector<Probe> probes_of(const Settings& settings) {
  std::vector<Probe> probes = {
      {"by_counter", "an epilogue is called by the fallback counter"},
      {"by_callback", "an epilogue is called by the graph task"},
      {"hook_beside_reduce", "a hook fires while a reduce of its rank is in flight"},
      {"reduce_outlives_hooks", "an epilogue begins before all reduces of its rank are complete"}};
  const bool has_several = settings.buckets() > 1;
  if (settings.hooks % settings.bucket != 0) {
    probes.push_back({"flush", "the epilogue launches a partly filled bucket"});
  }
  if (settings.ranks > 1) probes.push_back({"both_interfaces", "two ranks differ in interface"});
  if (settings.ranks > 1 && settings.collectives() > 1) {
    probes.push_back({"launches_apart", "a rank is two launches ahead of another"});
  }
  if (settings.ranks > 1 && settings.passes > 1) {
    probes.push_back({"passes_apart", "a rank fires hooks of a pass that another has not begun"});
  }
  if (settings.is_late && has_several) {
    probes.push_back(
        {"launch_waits", "a hook fires between the filling of a bucket and its launch"});
  }
  const bool is_free = settings.order == HookOrder::any && settings.hooks >= 2 * settings.bucket;
  if (is_free) probes.push_back({"second_bucket_first", "bucket 1 is full before bucket 0"});
  return probes;
}

bool has_bucket(const Settings& settings, std::uint64_t fired, std::uint32_t bucket) {
  for (std::uint32_t hook = bucket * settings.bucket; hook < (bucket + 1) * settings.bucket;
       ++hook) {
    if ((fired >> hook & 1U) == 0) return false;
  }
  return true;
}

}  // namespace

Coverage::Coverage(const Ranks& ranks)
    : ranks_(ranks),
      names_(ranks.rules().settings()),
      feasible_(kEventsMax),
      seen_(ranks.count() * kEventsMax),
      probes_(probes_of(ranks.rules().settings())),
      is_met_(probes_.size()) {}

Result<Coverage> Coverage::make(const Ranks& ranks) {
  const std::size_t names = EventNames(ranks.rules().settings()).size();
  if (names > kEventsMax || ranks.automaton().size() > kLocalStatesMax) {
    return fail(ErrorCode::usage,
                fmt::format("--coverage: {} names of events and {} states a rank, "
                            "at most {} and {}; lower N or K",
                            names, ranks.automaton().size(), kEventsMax, kLocalStatesMax));
  }
  Coverage coverage(ranks);
  coverage.find_feasible();
  coverage.triples_ = Triples::make(ranks.automaton(), coverage.names_, ranks.count());
  if (ranks.code_space() <= kCountedMax) {
    const auto all = search_all(ranks);
    if (!all) return tl::unexpected(all.error());
    coverage.all_states_ = all->counts.states;
  }
  return coverage;
}

// What can have come before each local state, and so before each event that is possible there.
void Coverage::find_feasible() {
  const RankAutomaton& automaton = ranks_.automaton();
  std::vector<Names> past(automaton.size());
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    const auto join = [&](LocalId id, const Names& names) {
      if (id == RankAutomaton::kNone || (names & ~past[id]).none()) return;
      past[id] |= names;
      has_changed = true;
    };
    for (LocalId id = 0; id < automaton.size(); ++id) {
      join(automaton.after_completion(id), past[id]);
      for (const Move& move : automaton.moves(id)) {
        const std::size_t name = names_.of(automaton.state(id), move.event);
        feasible_[name] |= past[id];
        Names after = past[id];
        join(move.next, after.set(name));
      }
    }
  }
}

// Of one rank.
std::uint64_t Coverage::both_ways(const Names* seen) const {
  std::uint64_t pairs = 0;
  for (std::size_t one = 0; one < names_.size(); ++one)
    for (std::size_t other = 0; other < one; ++other)
      pairs += seen[one][other] && seen[other][one] ? 1 : 0;
  return pairs;
}

void Coverage::add(const std::vector<Event>& schedule) {
  const RankRules& rules = ranks_.rules();
  std::vector<RankState> states(ranks_.count());
  std::vector<Names> past(ranks_.count());
  Digits digits{};
  std::fill(is_met_.begin(), is_met_.end(), false);
  met_.insert(0);
  if (triples_) triples_->begin();
  for (const Event& event : schedule) {
    LocalId& at = digits[event.rank];
    note_probes(states, event);
    if (event.what.kind == EventKind::complete) {
      at = ranks_.automaton().after_completion(at);
    } else {
      const std::size_t name = names_.of(states[event.rank], event.what);
      seen_[event.rank * kEventsMax + name] |= past[event.rank];
      past[event.rank].set(name);
      if (triples_) triples_->add(event.rank, name);
      const auto moves = ranks_.automaton().moves(at);
      at = std::find_if(moves.begin(), moves.end(), [&](const Move& move) {
             return move.event == event.what;
           })->next;
    }
    if (at == RankAutomaton::kNone) break;
    rules.step(states[event.rank], event.what);
    met_.insert(ranks_.code(digits));
  }
  for (std::size_t i = 0; i < probes_.size(); ++i) probes_[i].hits += is_met_[i] ? 1 : 0;
}

void Coverage::meet(std::string_view probe) {
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    if (probes_[i].name == probe) is_met_[i] = true;
  }
}

void Coverage::note_probes(const std::vector<RankState>& states, const Event& event) {
  const Settings& settings = ranks_.rules().settings();
  const RankState& own = states[event.rank];
  const bool is_flying = own.completed < own.launched;
  const auto any_other = [&](auto is_so) {
    return std::any_of(states.begin(), states.end(), is_so);
  };
  switch (event.what.kind) {
    case EventKind::hook: {
      const std::uint64_t fired = own.fired | std::uint64_t{1} << event.what.hook;
      if (is_flying) meet("hook_beside_reduce");
      if (own.ready != 0) meet("launch_waits");
      if (any_other([&](const RankState& other) { return other.pass < own.pass; })) {
        meet("passes_apart");
      }
      if (settings.hooks >= 2 * settings.bucket && has_bucket(settings, fired, 1) &&
          !has_bucket(settings, fired, 0)) {
        meet("second_bucket_first");
      }
      break;
    }
    case EventKind::counter:
    case EventKind::callback:
      meet(event.what.kind == EventKind::counter ? "by_counter" : "by_callback");
      if (is_flying) meet("reduce_outlives_hooks");
      break;
    case EventKind::launch:
      if (own.launched % settings.buckets() == settings.buckets() - 1) meet("flush");
      if (any_other([&](const RankState& other) { return other.launched < own.launched; })) {
        meet("launches_apart");
      }
      break;
    case EventKind::choose_counter:
    case EventKind::choose_callback: {
      const bool is_counter = event.what.kind == EventKind::choose_counter;
      const auto differing = is_counter ? Interface::callback : Interface::counter;
      if (any_other([&](const RankState& other) { return other.interface == differing; })) {
        meet("both_interfaces");
      }
      break;
    }
    default:
      break;
  }
}

CoverageCounts Coverage::counts() const {
  CoverageCounts counts{.states = met_.size(), .all_states = all_states_};
  for (const Names& names : feasible_) counts.feasible_pair_orders += names.count();
  counts.feasible_pair_orders *= ranks_.count();
  counts.feasible_pairs = both_ways(feasible_.data()) * ranks_.count();
  for (const Names& names : seen_) counts.pair_orders += names.count();
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank)
    counts.pairs_both_ways += both_ways(seen_.data() + rank * kEventsMax);
  if (!triples_) return counts;
  counts.triples = triples_->seen();
  counts.feasible_triples = triples_->feasible();
  return counts;
}

}  // namespace zeroproof::zero_epilogue

#include "sim/zero_epilogue/dpor_search.h"

#include <algorithm>

#include "sim/search/code_table.h"
#include "sim/zero_epilogue/footprints.h"

namespace zeroproof::zero_epilogue {
namespace {

// Process r is the engine of rank r, process P + r its stream. The label of an engine's event is
// its index among the moves of the local state.
class Program {
 public:
  struct State {
    Digits digits{};
    std::array<Property, kRanksMax> violated{};  // such a rank has ended
  };

  explicit Program(const Ranks& ranks) : ranks_(ranks) {
    const RankRules& rules = ranks.rules();
    for (std::size_t rank = 0; rank < ranks.count(); ++rank) {
      auto& kinds = footprints_.emplace_back();
      for (std::size_t kind = 0; kind < kEventKinds; ++kind) {
        for (std::uint32_t level = 0; level <= rules.collectives(); ++level) {
          const LocalFacts facts{.launched = static_cast<std::uint8_t>(level),
                                 .completed = static_cast<std::uint8_t>(level)};
          kinds[kind].push_back(footprint_of(rules, rank, static_cast<EventKind>(kind), facts));
        }
      }
    }
  }

  State initial() const { return {}; }
  std::size_t processes() const { return 2 * ranks_.count(); }

  void next(const State& state, std::uint32_t process, std::vector<TraceEvent>& events) const {
    const std::size_t rank = process % ranks_.count();
    const LocalFacts& facts = ranks_.automaton().facts(state.digits[rank]);
    if (process >= ranks_.count()) {
      if (facts.completed == ranks_.rules().collectives()) return;
      events.push_back({process, 0, footprint(rank, EventKind::complete, facts.completed)});
      return;
    }
    if (state.violated[rank] != Property::none) return;
    std::uint32_t label = 0;
    for (const Move& move : ranks_.automaton().moves(state.digits[rank])) {
      events.push_back({process, label++, footprint(rank, move.event.kind, facts.launched)});
    }
    // Not among the moves while the stream holds it up.
    if (facts.waits_for_stream) {
      events.push_back({process, label, footprint(rank, EventKind::finish, facts.launched)});
    }
  }

  bool is_enabled(const State& state, const TraceEvent& event) const {
    const std::size_t rank = event.process % ranks_.count();
    if (event.process >= ranks_.count()) return ranks_.may_complete(state.digits, rank);
    return event.label < ranks_.automaton().moves(state.digits[rank]).size();
  }

  void execute(State& state, const TraceEvent& event) const {
    const std::size_t rank = event.process % ranks_.count();
    LocalId& at = state.digits[rank];
    if (event.process >= ranks_.count()) {
      at = ranks_.automaton().after_completion(at);
      return;
    }
    const Move& move = ranks_.automaton().moves(at)[event.label];
    state.violated[rank] = ranks_.violated_by(state.digits, rank, move);
    if (state.violated[rank] == Property::none) at = move.next;
  }

  Event event_of(const State& state, const TraceEvent& event) const {
    const std::size_t rank = event.process % ranks_.count();
    const auto number = static_cast<std::uint8_t>(rank);
    if (event.process >= ranks_.count()) return {number, {EventKind::complete}};
    return {number, ranks_.automaton().moves(state.digits[rank])[event.label].event};
  }

 private:
  const Footprint* footprint(std::size_t rank, EventKind kind, std::uint32_t level) const {
    return &footprints_[rank][static_cast<std::size_t>(kind)][level];
  }

  const Ranks& ranks_;
  std::vector<std::array<std::vector<Footprint>, kEventKinds>> footprints_;
};

// What the executions show.
class Judge {
 public:
  Judge(const Ranks& ranks, const Program& program, DporResult& result)
      : ranks_(ranks), program_(program), result_(result) {}

  void add(const HappensBefore& trace, const Program::State& end) {
    if (met_.insert(trace.class_hash()).is_new) ++result_.classes;
    bool has_violated = false;
    for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
      if (end.violated[rank] == Property::none) continue;
      has_violated = true;
      note(end.violated[rank], trace, last_of(trace, rank));
    }
    if (!has_violated && !ranks_.has_finished(end.digits)) {
      note(Property::a5, trace, trace.size());
    }
  }

 private:
  static std::size_t last_of(const HappensBefore& trace, std::size_t process) {
    std::size_t last = trace.size() - 1;
    while (trace.event(last).process != process) --last;
    return last;
  }

  // Keeps what comes before `last` and it; all events when there is no such event.
  void note(Property property, const HappensBefore& trace, std::size_t last) {
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < trace.size(); ++i) {
      if (last == trace.size() || i == last || trace.is_before(i, last)) kept.push_back(i);
    }
    const bool is_known = result_.findings.has(property);
    const bool is_better = !is_known || kept.size() < result_.findings.least_events(property);
    result_.findings.add(property, kept.size());
    if (!is_better) return;
    Counterexample example{property, {}};
    Program::State state = program_.initial();
    for (const std::size_t i : kept) {
      example.events.push_back(program_.event_of(state, trace.event(i)));
      program_.execute(state, trace.event(i));
    }
    std::erase_if(result_.counterexamples,
                  [&](const Counterexample& one) { return one.property == property; });
    result_.counterexamples.push_back(std::move(example));
  }

  const Ranks& ranks_;
  const Program& program_;
  DporResult& result_;
  CodeTable met_;
};

}  // namespace

DporResult search_dpor(const Ranks& ranks,
                       const std::function<bool(const DporCounts&)>& should_stop) {
  const Program program(ranks);
  Dpor dpor(program);
  DporResult result;
  Judge judge(ranks, program, result);
  result.counts = dpor.run([&](const HappensBefore& trace, const Program::State& end) {
    judge.add(trace, end);
    return !should_stop || !should_stop(dpor.counts());
  });
  std::sort(result.counterexamples.begin(), result.counterexamples.end(),
            [](const auto& left, const auto& right) { return left.property < right.property; });
  return result;
}

}  // namespace zeroproof::zero_epilogue

#include "sim/zero_epilogue/reduced_search.h"

#include <algorithm>
#include <array>
#include <optional>

#include "model/check.h"
#include "sim/search/code_table.h"
#include "sim/zero_epilogue/events.h"

namespace zeroproof::zero_epilogue {
namespace {

// Codes in order of discovery are the queue; each remembers how it was first met.
class Walk {
 public:
  enum class Goal { any, rank_0 };

  Walk(const Ranks& ranks, Goal goal, Until until, const std::function<bool()>& should_stop)
      : ranks_(ranks), goal_(goal), until_(until), should_stop_(should_stop) {}

  void run() {
    met_.insert(0);
    from_.push_back({});
    for (std::uint32_t at = 0; at < met_.size() && !is_done_; ++at) {
      if (at % kStatesBetweenStops == 0 && should_stop_ && should_stop_()) {
        counts_.was_stopped = true;
        break;
      }
      expand(at);
    }
    counts_.states = met_.size();
    counts_.store_bytes = met_.bytes() + from_.capacity() * sizeof(From);
  }

  const ReducedCounts& counts() const { return counts_; }
  bool has(Property property) const { return first_of(property).has_value(); }

  // A shortest way to what was met first.
  Counterexample counterexample(Property property) const {
    std::vector<Event> events;
    for (From step = *first_of(property); step.state != CodeTable::kNone;
         step = from_[step.state]) {
      events.push_back(step.event);
    }
    std::reverse(events.begin(), events.end());
    return {property, std::move(events)};
  }

 private:
  static constexpr std::uint32_t kStatesBetweenStops = 4096;

  struct From {
    std::uint32_t state = CodeTable::kNone;
    Event event;
  };

  void expand(std::uint32_t at) {
    const Code code = met_.code(at);
    const Digits digits = ranks_.digits(code);
    const Stubborn stubborn(ranks_, digits);
    const ProcessSet set =
        goal_ == Goal::any ? stubborn.smallest() : stubborn.closure(engine_of(0));
    if (set == 0 && !ranks_.has_finished(digits)) note(Property::a5, from_[at]);
    for_each_event(ranks_, code, set, [&](const Event& event, Property violated, Code next) {
      ++counts_.transitions;
      if (violated == Property::none) {
        if (met_.insert(next).is_new) from_.push_back({at, event});
      } else if (goal_ == Goal::any || event.rank == 0) {
        note(violated, {at, event});
      }
    });
  }

  void note(Property property, const From& last) {
    auto& first = first_[static_cast<std::size_t>(property)];
    if (!first) first = last;
    is_done_ = until_ == Until::first_finding && property != Property::a5;
  }
  const std::optional<From>& first_of(Property property) const {
    return first_[static_cast<std::size_t>(property)];
  }

  const Ranks& ranks_;
  const Goal goal_;
  const Until until_;
  const std::function<bool()>& should_stop_;
  bool is_done_ = false;
  ReducedCounts counts_;
  CodeTable met_;
  std::vector<From> from_;
  std::array<std::optional<From>, kProperties> first_{};
};

}  // namespace

namespace {

constexpr std::array kSafety = {Property::a1, Property::a2, Property::a3, Property::a4};

void add(ReducedResult& result, const Walk& walk, Property property) {
  result.counterexamples.push_back(walk.counterexample(property));
  result.findings.add(property, result.counterexamples.back().events.size());
}

// What rank 0 can violate, by shortest ways.
ReducedCounts add_safety(ReducedResult& result, const Ranks& ranks, Until until,
                         const std::function<bool()>& should_stop) {
  Walk around(ranks, Walk::Goal::rank_0, until, should_stop);
  around.run();
  for (const Property property : kSafety) {
    if (around.has(property)) add(result, around, property);
  }
  return around.counts();
}

}  // namespace

ReducedResult search_reduced(const Ranks& ranks, Until until,
                             const std::function<bool()>& should_stop) {
  ReducedResult result;
  // With a defect, the violation is looked for first, and may settle the verdict.
  const bool has_defect = ranks.rules().settings().defect != Defect::none;
  if (has_defect && until == Until::first_finding) {
    result.counts = result.shortest = add_safety(result, ranks, until, should_stop);
    if (!result.findings.is_empty()) return result;
  }
  Walk verdict(ranks, Walk::Goal::any, until, should_stop);
  verdict.run();
  result.counts = verdict.counts();
  const auto is_met = [&](Property property) { return verdict.has(property); };
  if (std::any_of(kSafety.begin(), kSafety.end(), is_met)) {
    // A violation ends a run, so the verdict need not have met every property.
    result.shortest = add_safety(result, ranks, until, should_stop);
    ZP_CHECK(!result.findings.is_empty() || result.shortest.was_stopped,
             "a violation that rank 0 cannot repeat");
  }
  const bool is_hang_wanted = until == Until::every_property || result.findings.is_empty();
  if (is_hang_wanted && verdict.has(Property::a5)) add(result, verdict, Property::a5);
  return result;
}

}  // namespace zeroproof::zero_epilogue

#include "props/train/case_minimizer.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "model/check.h"
#include "props/minimize.h"
#include "sim/schedulers/random.h"
#include "sim/schedulers/record.h"
#include "sim/schedulers/replay.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kOrdersTried = 24;  // random orders of a smaller cell
constexpr std::uint64_t kPartTests = 400;   // of delta debugging

// A run with what it decided.
struct Recorded {
  CaseRun run;
  Choices choices;
};

Recorded run_under(CaseRunner& runner, Scheduler& scheduler) {
  RecordScheduler record(scheduler);
  record.new_execution();
  Recorded recorded{runner.run(record), {}};
  recorded.choices = record.choices();
  return recorded;
}

void drop_trailing_zeros(Choices& choices) {
  while (!choices.empty() && choices.back() == 0) choices.pop_back();
}

// Smaller cells, bold ones first.
std::vector<EngineCase> smaller_cases(const EngineCase& from) {
  std::vector<EngineCase> smaller;
  const auto add = [&](auto change) {
    smaller.push_back(from);
    change(smaller.back());
  };
  const TrainCell& cell = from.cell;
  if (cell.steps > 1) add([](EngineCase& one) { one.cell.steps = 1; });
  if (cell.steps > 2) add([](EngineCase& one) { one.cell.steps = 2; });
  for (const int ranks : {1, 2, 3})
    if (!cell.config && ranks < cell.world_size)
      add([&](EngineCase& one) { one.cell.world_size = ranks; });
  for (int stage = 0; stage < cell.stage; ++stage)
    if (!cell.config) add([&](EngineCase& one) { one.cell.stage = stage; });
  if (cell.sim->preempts) add([](EngineCase& one) { one.cell.sim->preempts = false; });
  return smaller;
}

class CaseMinimizer {
 public:
  CaseMinimizer(const EngineCase& engine_case, Choices choices, std::string kind,
                const std::function<bool()>& should_stop)
      : kind_(std::move(kind)), should_stop_(should_stop) {
    best_.engine_case = engine_case;
    best_.choices = std::move(choices);
  }

  FailingCase run() {
    while (shrink_cell()) {
    }
    shrink_choices();
    confirm();
    return std::move(best_);
  }

 private:
  bool has_to_stop() const { return should_stop_ && should_stop_(); }

  bool shrink_cell() {
    for (const EngineCase& candidate : smaller_cases(best_.engine_case)) {
      if (has_to_stop()) return false;
      auto choices = failing_order(candidate);
      if (!choices) continue;
      best_.engine_case = candidate;
      best_.choices = std::move(*choices);
      return true;
    }
    return false;
  }

  // Of the candidate: the choices at hand, none at all, or some random order.
  std::optional<Choices> failing_order(const EngineCase& candidate) {
    auto runner = CaseRunner::create(candidate);
    if (!runner) return std::nullopt;
    ReplayScheduler first({}, ReplayFit::lenient);
    ReplayScheduler same(best_.choices, ReplayFit::lenient);
    RandomScheduler random(0);
    for (std::uint64_t tried = 0; tried < kOrdersTried; ++tried) {
      if (has_to_stop()) return std::nullopt;
      Scheduler* const scheduler = tried == 0   ? static_cast<Scheduler*>(&first)
                                   : tried == 1 ? static_cast<Scheduler*>(&same)
                                                : &random;
      ++best_.runs;
      Recorded recorded = run_under(*runner, *scheduler);
      if (find_kind(recorded.run, kind_)) return std::move(recorded.choices);
    }
    return std::nullopt;
  }

  bool fails_with(const Choices& choices) {
    ++best_.runs;
    ReplayScheduler replay(choices, ReplayFit::lenient);
    return find_kind(run_under(*runner_, replay).run, kind_) != nullptr;
  }

  // Choices after the last one that matters become the first option, by bisection; that is nearly
  // the slice of what the bad moment depends on. Then single decisions are dropped.
  void shrink_choices() {
    runner_ = std::make_unique<CaseRunner>(*CaseRunner::create(best_.engine_case));
    drop_trailing_zeros(best_.choices);
    std::size_t enough = best_.choices.size();
    for (std::size_t least = 0; least < enough && !has_to_stop();) {
      const std::size_t half = least + (enough - least) / 2;
      const auto end = best_.choices.begin() + static_cast<std::ptrdiff_t>(half);
      if (fails_with(Choices(best_.choices.begin(), end))) {
        enough = half;
      } else {
        least = half + 1;
      }
    }
    best_.choices.resize(enough);
    drop_decisions();
    drop_trailing_zeros(best_.choices);
  }

  void drop_decisions() {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < best_.choices.size(); ++i)
      if (best_.choices[i] != 0) places.push_back(i);
    const auto with = [&](const KeptParts& kept) {
      Choices choices(best_.choices.size(), 0);
      for (const std::size_t part : kept) choices[places[part]] = best_.choices[places[part]];
      return choices;
    };
    KeptParts known(places.size());
    std::iota(known.begin(), known.end(), std::size_t{0});
    const auto fails = [&](const KeptParts& kept) {
      if (kept == known) return true;
      if (has_to_stop() || !fails_with(with(kept))) return false;
      known = kept;
      return true;
    };
    const MinimizedParts parts = minimize_parts(places.size(), fails, {.tests = kPartTests});
    best_.choices = with(parts.kept);
    best_.is_minimal = parts.stats.is_minimal && !has_to_stop();
  }

  // Once more as it will be shown, with every choice written down.
  void confirm() {
    ReplayScheduler replay(best_.choices, ReplayFit::lenient);
    Recorded recorded = run_under(*runner_, replay);
    ++best_.runs;
    ZP_CHECK(find_kind(recorded.run, kind_), "a minimised case shows its finding again");
    best_.choices = std::move(recorded.choices);
    best_.run = std::move(recorded.run);
  }

  std::string kind_;
  const std::function<bool()>& should_stop_;
  FailingCase best_;
  std::unique_ptr<CaseRunner> runner_;
};

}  // namespace

FailingCase minimize_case(const EngineCase& engine_case, const Choices& choices,
                          const std::string& kind, const std::function<bool()>& should_stop) {
  return CaseMinimizer(engine_case, choices, kind, should_stop).run();
}

}  // namespace zeroproof::train

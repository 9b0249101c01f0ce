// Events a second of real engines under an explorer: seam calls and decisions
// (docs/spec/explorer.md 5.1 E8, 5.2 R1 and R2). `fingerprints` 1: the state is asked for at every
// decision.
#include <benchmark/benchmark.h>

#include "sim/hook_order/run.h"
#include "sim/hook_order/search.h"
#include "sim/schedulers/random.h"

namespace zeroproof {
namespace {

using hook_order::Order;
using hook_order::run;
using hook_order::search;
using hook_order::SearchResult;
using hook_order::Settings;
using hook_order::World;

Settings settings_of(const benchmark::State& state) {
  Settings settings;
  settings.stage = static_cast<std::uint32_t>(state.range(0));
  settings.hooks = static_cast<std::uint32_t>(state.range(1));
  settings.order = settings.stage == 1 ? Order::any : Order::same;
  settings.has_overlap = settings.stage == 3;
  return settings;
}

class Asking final : public Chooser {
 public:
  explicit Asking(Chooser& inner) : inner_(inner) {}
  std::size_t choose(const ChoicePoint& at) override {
    seen_ ^= Fingerprint(at.state).low;
    return inner_.choose(at);
  }
  std::uint64_t seen() const { return seen_; }

 private:
  Chooser& inner_;
  std::uint64_t seen_ = 0;
};

void count(benchmark::State& state, const World& world, std::uint64_t executions) {
  const auto rate = [](std::uint64_t value) {
    return benchmark::Counter(static_cast<double>(value), benchmark::Counter::kIsRate);
  };
  state.counters["events/s"] = rate(world.events());
  state.counters["executions/s"] = rate(executions);
  state.counters["events_a_run"] =
      static_cast<double>(world.events()) / static_cast<double>(executions);
}

void hook_order_random(benchmark::State& state) {
  World world(settings_of(state));
  RandomScheduler random(1);
  Asking asking(random);
  Chooser& chooser = state.range(2) != 0 ? static_cast<Chooser&>(asking) : random;
  std::uint64_t executions = 0;
  for (auto _ : state) {
    random.new_execution();
    benchmark::DoNotOptimize(run(world, chooser).violated);
    ++executions;
  }
  benchmark::DoNotOptimize(asking.seen());
  count(state, world, executions);
}
BENCHMARK(hook_order_random)
    ->ArgsProduct({{1, 2, 3}, {10, 64}, {0, 1}})
    ->ArgNames({"stage", "N", "fingerprints"})
    ->Unit(benchmark::kMicrosecond);

void hook_order_search(benchmark::State& state) {
  World world(settings_of(state));
  SearchResult found;
  std::uint64_t executions = 0;
  for (auto _ : state) {
    found = search(world, {.is_reduced = state.range(2) != 0});
    executions += found.executions;
  }
  count(state, world, executions);
  state.counters["states"] = static_cast<double>(found.states);
  state.counters["transitions"] = static_cast<double>(found.transitions);
}
BENCHMARK(hook_order_search)
    ->Args({1, 8, 0})
    ->Args({2, 6, 0})
    ->Args({3, 6, 0})
    ->Args({1, 8, 1})
    ->Args({2, 8, 1})
    ->Args({3, 8, 1})
    ->ArgNames({"stage", "N", "reduced"})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zeroproof

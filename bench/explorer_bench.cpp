#include <benchmark/benchmark.h>

#include <cstdint>
#include <string_view>

#include "sim/explorer.h"
#include "sim/schedulers/exhaustive.h"
#include "sim/schedulers/random.h"

namespace zeroproof {
namespace {

constexpr std::string_view kNames[] = {"e0",  "e1",  "e2",  "e3",  "e4",  "e5",  "e6",  "e7",
                                       "e8",  "e9",  "e10", "e11", "e12", "e13", "e14", "e15",
                                       "e16", "e17", "e18", "e19", "e20", "e21", "e22", "e23"};

// n independent events, with almost no cost of its own: what is measured is the search.
struct Antichain {
  std::size_t size;

  Outcome operator()(Chooser& chooser) const {
    std::uint64_t left = (std::uint64_t{1} << size) - 1;
    for (std::size_t count = size; count > 1; --count) {
      const std::size_t taken =
          chooser.choose({"bench.ready", std::span(kNames).first(count), Fingerprint{left, 1}});
      std::uint64_t rest = left;
      for (std::size_t i = 0; i < taken; ++i) rest &= rest - 1;
      left &= ~(rest & -rest);
    }
    return {};
  }
};

void exhaustive_antichain(benchmark::State& state) {
  const Antichain world{static_cast<std::size_t>(state.range(0))};
  ExploreResult result;
  for (auto _ : state) {
    ExhaustiveScheduler exhaustive;
    result = explore(world, exhaustive, {});
  }
  const auto rate = [](double count) {
    return benchmark::Counter(count, benchmark::Counter::kIsIterationInvariantRate);
  };
  const auto& stats = result.progress.scheduler;
  state.counters["states"] = static_cast<double>(*stats.states);
  state.counters["states/s"] = rate(static_cast<double>(*stats.states));
  state.counters["runs/s"] = rate(static_cast<double>(result.executions));
  state.counters["steps/s"] = rate(static_cast<double>(result.progress.steps));
}
BENCHMARK(exhaustive_antichain)->Arg(8)->Arg(12)->Arg(16)->Unit(benchmark::kMillisecond);

// No state is pruned, so no execution is cut: the difference is the price of a cut.
void plain_antichain(benchmark::State& state) {
  const Antichain world{static_cast<std::size_t>(state.range(0))};
  std::uint64_t steps = 0;
  for (auto _ : state) {
    ExhaustiveScheduler exhaustive(Pruning::off);
    steps += explore(world, exhaustive, {}).progress.steps;
  }
  state.counters["steps/s"] =
      benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kIsRate);
}
BENCHMARK(plain_antichain)->Arg(8)->Unit(benchmark::kMillisecond);

void random_antichain(benchmark::State& state) {
  const Antichain world{static_cast<std::size_t>(state.range(0))};
  std::uint64_t steps = 0;
  for (auto _ : state) {
    RandomScheduler random(1);
    steps += explore(world, random, {.executions = 10'000}).progress.steps;
  }
  state.counters["steps/s"] =
      benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kIsRate);
}
BENCHMARK(random_antichain)->Arg(8)->Arg(24)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zeroproof

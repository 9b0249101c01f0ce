#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "sim/zero_epilogue/dpor_search.h"
#include "sim/zero_epilogue/shrink.h"
#include "sim/zero_epilogue/walker.h"

namespace zeroproof::zero_epilogue {
namespace {

Settings common_settings(const std::vector<std::string>& words) {
  return parse_settings(words).value();
}

// D2 of docs/spec/explorer.md 5.3, with the automaton that the search walks on.
void needle(benchmark::State& state) {
  const Settings settings = common_settings({"P=2", "N=11", "defect=M9"});
  for (auto _ : state) {
    const auto ranks = Ranks::make(settings);
    benchmark::DoNotOptimize(search_reduced(*ranks, Until::first_finding).counts.states);
  }
}
BENCHMARK(needle)->Unit(benchmark::kMillisecond);

// (2 N!)^2 executions.
void dpor(benchmark::State& state) {
  const auto ranks = Ranks::make(common_settings({"P=2", "N=" + std::to_string(state.range(0))}));
  std::uint64_t executions = 0;
  for (auto _ : state) executions += search_dpor(*ranks).counts.executions;
  state.counters["executions/s"] =
      benchmark::Counter(static_cast<double>(executions), benchmark::Counter::kIsRate);
}
BENCHMARK(dpor)->Arg(4)->Arg(5)->Unit(benchmark::kMillisecond);

// K4 of docs/spec/explorer.md 5.4: one random failure of defect M1 to M9 at a time.
void shrinking(benchmark::State& state) {
  const std::string defect = "defect=M" + std::to_string(state.range(0));
  const Settings settings = common_settings({"P=2", "N=7", "K=2", "N1=3", defect});
  std::vector<Counterexample> failures;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto found = walk(settings, {.seed = seed, .schedules = 1'000'000});
    failures.push_back({found->first.value(), found->failing});
  }
  std::size_t next = 0;
  std::uint64_t executions = 0;
  for (auto _ : state) {
    executions += shrink(settings, failures[next]).executions;
    next = (next + 1) % failures.size();
  }
  state.counters["executions"] =
      benchmark::Counter(static_cast<double>(executions), benchmark::Counter::kAvgIterations);
}
BENCHMARK(shrinking)->DenseRange(1, 9)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zeroproof::zero_epilogue

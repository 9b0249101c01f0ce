// Nanoseconds a hook of each policy: called directly, in registration order, expected-set
// queries included, events to a null sink. pr7780 counts in every hook: the quadratic case.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>

#include "bench/policy_backward.h"
#include "engine/hooks/policies.h"

namespace zeroproof {
namespace {

void run_policy(benchmark::State& state, const PolicyInfo& info, EventSink& sink) {
  const auto params = static_cast<std::size_t>(state.range(0));
  const std::unique_ptr<HookPolicy> policy = info.make();
  CountingHost host(params, sink);
  host.attach(*policy);
  for (auto _ : state) host.run_backward();
  const auto backwards = static_cast<double>(state.iterations());
  const auto hooks = backwards * static_cast<double>(params);
  state.counters["ns_per_hook"] =
      benchmark::Counter(hooks * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["queries_per_backward"] =
      static_cast<double>(host.membership_queries()) / backwards;
  state.counters["epilogues_per_backward"] = static_cast<double>(host.epilogues()) / backwards;
}

void register_policy(const PolicyInfo& info) {
  auto* bench = benchmark::RegisterBenchmark(fmt::format("hook_policy/{}", info.id).c_str(),
                                             [&info](benchmark::State& state) {
                                               NullSink sink;
                                               run_policy(state, info, sink);
                                             });
  for (const int params : {16, 147, 1'024, 8'192, 65'536}) bench->Arg(params);
  bench->Unit(benchmark::kMicrosecond);
}

const bool kAreRegistered = [] {
  for (const PolicyInfo& info : policy_catalogue()) register_policy(info);
  return true;
}();

}  // namespace
}  // namespace zeroproof

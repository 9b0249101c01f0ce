// Nanoseconds a hook of each policy: called directly, in registration order, expected-set
// queries included, events to a null sink. deepspeed-0.18.5 counts in every hook: the quadratic
// case.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>

#include "model/check.h"
#include "sim/protocol/counting_host.h"
#include "sim/trace/writer.h"
#include "zeroproof/engine/hooks/policies.h"
#include "zeroproof/internal/model/names.h"

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

// The same with the trace on: every event becomes a line of a hooktrace file.
class WritingSink final : public EventSink {
 public:
  WritingSink(TraceWriter& writer, const NameTable& names) : writer_(writer), names_(names) {}
  void on_event(const HookEvent& event) override {
    ZP_CHECK(writer_.add(event, names_).has_value(), "the trace can be written");
  }

 private:
  TraceWriter& writer_;
  const NameTable& names_;
};

void run_traced(benchmark::State& state, const PolicyInfo& info) {
  const std::string path =
      (std::filesystem::temp_directory_path() / "zeroproof_hook_policy_bench.jsonl").string();
  NameTable names;
  for (std::int64_t param = 0; param < state.range(0); ++param) {
    names.intern(fmt::format("layer.{}.weight", param));
  }
  auto writer = TraceWriter::create(path);
  if (!writer || !writer->add(HeaderRecord{})) return state.SkipWithError("no room for a trace");
  WritingSink sink(*writer, names);
  run_policy(state, info, sink);  // never finished: the file does not appear
}

void register_traced(const PolicyInfo& info) {
  benchmark::RegisterBenchmark(fmt::format("hook_policy_traced/{}", info.id).c_str(),
                               [&info](benchmark::State& state) { run_traced(state, info); })
      ->Arg(147)
      ->Unit(benchmark::kMicrosecond);
}

const bool kAreRegistered = [] {
  for (const PolicyInfo& info : policy_catalogue()) {
    register_policy(info);
    register_traced(info);
  }
  return true;
}();

}  // namespace
}  // namespace zeroproof

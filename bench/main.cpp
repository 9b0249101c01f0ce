#include <benchmark/benchmark.h>

#include "bench/growth_reporter.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  // 147 parameters are those of M267; 65,536 is reported but too slow to repeat when quadratic.
  zeroproof::GrowthReporter reporter({147, 8'192});
  reporter.fit("accumulate_ready_leaves", {12'500, 100'000});
  reporter.fit("run_chain", {10'000, 1'000'000});
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
}

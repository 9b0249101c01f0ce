#include <benchmark/benchmark.h>

#include "bench/growth_reporter.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  // 147 parameters are those of M267; 65,536 is reported but too slow to repeat when quadratic.
  zeroproof::GrowthReporter reporter(147, 8'192);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
}

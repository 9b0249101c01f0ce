#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

namespace zeroproof {

// The console table, followed by the growth exponent of every benchmark family that was run for
// several sizes: the slope of log(time) over log(size) by least squares.
class GrowthReporter final : public benchmark::ConsoleReporter {
 public:
  // Sizes outside [size_min, size_max] are measured but not fitted.
  GrowthReporter(double size_min, double size_max) : size_min_(size_min), size_max_(size_max) {}

  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  struct Point {
    double size = 0;
    double seconds = 0;
  };

  double size_min_;
  double size_max_;
  std::map<std::string, std::vector<Point>> families_;
};

}  // namespace zeroproof

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
  // Sizes that are fitted; others are measured only.
  struct Sizes {
    double min = 0;
    double max = 0;
  };

  explicit GrowthReporter(Sizes sizes) : sizes_(sizes) {}
  // Other sizes for one family.
  void fit(const std::string& family, Sizes sizes) { sizes_of_family_[family] = sizes; }

  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  struct Point {
    double size = 0;
    double seconds = 0;
  };

  Sizes sizes_of(const std::string& family) const;

  Sizes sizes_;
  std::map<std::string, Sizes> sizes_of_family_;
  std::map<std::string, std::vector<Point>> families_;
};

}  // namespace zeroproof

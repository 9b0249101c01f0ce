#include "bench/growth_reporter.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace zeroproof {
namespace {

double slope(const std::vector<std::pair<double, double>>& points) {
  double mean_x = 0;
  double mean_y = 0;
  for (const auto& [x, y] : points) {
    mean_x += x / static_cast<double>(points.size());
    mean_y += y / static_cast<double>(points.size());
  }
  double covariance = 0;
  double variance = 0;
  for (const auto& [x, y] : points) {
    covariance += (x - mean_x) * (y - mean_y);
    variance += (x - mean_x) * (x - mean_x);
  }
  return covariance / variance;
}

}  // namespace

GrowthReporter::Sizes GrowthReporter::sizes_of(const std::string& family) const {
  const auto at = sizes_of_family_.find(family);
  return at == sizes_of_family_.end() ? sizes_ : at->second;
}

void GrowthReporter::ReportRuns(const std::vector<Run>& runs) {
  ConsoleReporter::ReportRuns(runs);
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
    const double size = std::atof(run.run_name.args.c_str());
    const Sizes sizes = sizes_of(run.run_name.function_name);
    if (size < sizes.min || size > sizes.max) continue;
    const double seconds = run.real_accumulated_time / static_cast<double>(run.iterations);
    families_[run.run_name.function_name].push_back({size, seconds});
  }
}

void GrowthReporter::Finalize() {
  ConsoleReporter::Finalize();
  for (const auto& [family, points] : families_) {
    std::vector<std::pair<double, double>> logs;
    for (const Point& point : points) {
      logs.emplace_back(std::log(point.size), std::log(point.seconds));
    }
    if (points.size() < 3) continue;
    GetOutputStream() << fmt::format("growth exponent of {:<28} over N = {} … {}: {:.3f}\n", family,
                                     sizes_of(family).min, sizes_of(family).max, slope(logs));
  }
}

}  // namespace zeroproof

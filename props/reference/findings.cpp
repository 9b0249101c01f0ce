#include "props/reference/findings.h"

#include <numeric>
#include <utility>

namespace zeroproof::reference {

std::int64_t Share::unspecified_units() const {
  return std::accumulate(unspecified.begin(), unspecified.end(), std::int64_t{0});
}

double Share::percent_unspecified() const {
  if (units == 0) return 0.0;
  return 100.0 * static_cast<double>(unspecified_units()) / static_cast<double>(units);
}

void Share::add(const Share& other) {
  units += other.units;
  for (std::size_t i = 0; i < kFreedoms; ++i) unspecified[i] += other.unspecified[i];
}

void Coverage::add(const Coverage& other) {
  for (std::size_t i = 0; i < kRules; ++i) applied[i] += other.applied[i];
  parameter_time.add(other.parameter_time);
  collectives.add(other.collectives);
}

void Ledger::check(Rule rule, bool holds, std::uint64_t lc, const std::string& text) {
  applied(rule);
  if (!holds) find(rule, lc, text);
}

void Ledger::find(Rule rule, std::uint64_t lc, std::string text) {
  bool& is_found = is_found_[static_cast<std::size_t>(rule)];
  if (std::exchange(is_found, true)) return;
  findings_.push_back({.rule = rule, .lc = lc, .text = std::move(text)});
}

}  // namespace zeroproof::reference

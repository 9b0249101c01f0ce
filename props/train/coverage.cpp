#include "props/train/coverage.h"

#include <algorithm>

#include "props/train/case_runner.h"

namespace zeroproof::train {
namespace {

constexpr std::size_t kPairedOptionsMax = 64;  // of one choice

}  // namespace

Coverage::Name Coverage::number_of(Site& site, std::string_view name) {
  const auto known = site.numbers.find(name);
  if (known != site.numbers.end()) return known->second;
  const auto number = static_cast<Name>(site.numbers.size());
  site.numbers.emplace(name, number);
  site.taken.push_back(false);
  return number;
}

std::vector<std::string> Coverage::names_of(const Site& site) {
  std::vector<std::string> names(site.numbers.size());
  for (const auto& [name, number] : site.numbers) names[number] = name;
  return names;
}

void Coverage::note(const ChoicePoint& at, std::size_t taken) {
  if (at.options.size() < 2) return;
  auto found = sites_.find(at.site);
  if (found == sites_.end()) found = sites_.try_emplace(std::string(at.site)).first;
  Site& site = found->second;
  ++site.choices;
  site.widest = std::max<std::uint64_t>(site.widest, at.options.size());
  const Name first = number_of(site, at.options[taken]);
  site.taken[first] = true;
  if (at.options.size() > kPairedOptionsMax) return;
  for (const std::string_view option : at.options) {
    const Name other = number_of(site, option);
    if (other != first) site.before.emplace(first, other);
  }
}

void Coverage::note(const CaseRun& run) {
  results_.insert(run.result);
  ends_.insert(run.state);
  classes_.insert(run.order_class);
  for (const std::string& name : run.reached) ++reached_[name];
}

void Coverage::add(const Coverage& other) {
  for (const auto& [name, theirs] : other.sites_) {
    Site& site = sites_[name];
    site.choices += theirs.choices;
    site.widest = std::max(site.widest, theirs.widest);
    std::vector<Name> numbers;
    for (const std::string& option : names_of(theirs)) numbers.push_back(number_of(site, option));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (theirs.taken[i]) site.taken[numbers[i]] = true;
    for (const auto& [first, second] : theirs.before)
      site.before.emplace(numbers[first], numbers[second]);
  }
  for (const auto& [name, executions] : other.reached_) reached_[name] += executions;
  results_.insert(other.results_.begin(), other.results_.end());
  ends_.insert(other.ends_.begin(), other.ends_.end());
  classes_.insert(other.classes_.begin(), other.classes_.end());
}

std::vector<SiteCount> Coverage::sites() const {
  std::vector<SiteCount> counts;
  for (const auto& [name, site] : sites_) {
    SiteCount count{.site = name, .choices = site.choices, .widest = site.widest, .taken = {}};
    for (const auto& [option, number] : site.numbers)
      if (site.taken[number]) count.taken.insert(option);
    for (const auto& [first, second] : site.before) {
      const bool is_both = site.before.contains({second, first});
      if (!is_both || first < second) ++count.pairs;
      if (is_both && first < second) ++count.pairs_in_both_orders;
    }
    counts.push_back(std::move(count));
  }
  return counts;
}

std::vector<SometimesCount> Coverage::sometimes(const std::set<std::string>& required) const {
  std::map<std::string, SometimesCount> all;
  for (const std::string& name : required)
    all[name] = {.name = name, .executions = 0, .is_required = true};
  for (const auto& [name, executions] : reached_) {
    all[name].name = name;
    all[name].executions = executions;
  }
  std::vector<SometimesCount> counts;
  for (const auto& [name, count] : all) counts.push_back(count);
  return counts;
}

}  // namespace zeroproof::train

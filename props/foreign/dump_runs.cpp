#include "props/foreign/dump_runs.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace zeroproof {
namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// "…rank_3…" with a # for the number; the number at the end of a stem without that word.
std::string without_rank(std::string stem) {
  const std::size_t word = stem.rfind("rank");
  std::size_t digits = word == std::string::npos ? stem.size() : word + 4;
  while (digits < stem.size() && !is_digit(stem[digits])) ++digits;
  if (digits < stem.size()) {
    std::size_t end = digits;
    while (end < stem.size() && is_digit(stem[end])) ++end;
    return stem.replace(digits, end - digits, "#");
  }
  std::size_t end = stem.size();
  while (end > 0 && is_digit(stem[end - 1])) --end;
  return stem.substr(0, end) + "#";
}

std::string folder_of(const RankDump& dump) {
  const std::size_t slash = dump.path.rfind('/');
  return slash == std::string::npos ? std::string() : dump.path.substr(0, slash);
}

// What dumps of one run have in common in their names.
std::string name_of_run(const RankDump& dump) {
  const std::size_t slash = dump.path.rfind('/');
  const std::string name = slash == std::string::npos ? dump.path : dump.path.substr(slash + 1);
  return folder_of(dump) + "/" + without_rank(name.substr(0, name.find('.'))) +
         (dump.format == DumpFormat::kineto ? " kineto" : " flight recorder");
}

using Dumps = std::vector<RankDump>;

std::set<std::int32_t> ranks_of(const Dumps& dumps) {
  std::set<std::int32_t> ranks;
  for (const RankDump& dump : dumps) ranks.insert(dump.rank);
  return ranks;
}

bool complete_each_other(const Dumps& one, const Dumps& other) {
  if (one.front().format != DumpFormat::kineto || other.front().format != DumpFormat::kineto)
    return false;
  const auto ranks = ranks_of(one);
  const auto more = ranks_of(other);
  return one.front().world > 0 && one.front().world == other.front().world &&
         folder_of(one.front()) == folder_of(other.front()) &&
         std::none_of(more.begin(), more.end(), [&](auto rank) { return ranks.contains(rank); });
}

// The profiler names a trace by the host and process that wrote it: hosts of one run are joined by
// the ranks that their traces hold.
std::vector<Dumps> by_run(Dumps dumps) {
  std::map<std::string, Dumps> named;
  const bool are_many = dumps.size() > 1;
  for (const RankDump& dump : dumps) named[name_of_run(dump)].push_back(dump);
  const bool are_all_alone = std::all_of(named.begin(), named.end(),
                                         [](const auto& run) { return run.second.size() == 1; });
  if (are_many && are_all_alone && ranks_of(dumps).size() == dumps.size())
    return {std::move(dumps)};
  std::vector<Dumps> runs;
  for (auto& entry : named) {
    Dumps& run = entry.second;  // clang 14 cannot capture a structured binding
    const auto joined = std::find_if(runs.begin(), runs.end(), [&](const Dumps& other) {
      return complete_each_other(other, run);
    });
    if (joined == runs.end())
      runs.push_back(std::move(run));
    else
      std::move(run.begin(), run.end(), std::back_inserter(*joined));
  }
  return runs;
}

// The windows of one rank in the order of time.
void sort_windows(Dumps& windows) {
  std::stable_sort(windows.begin(), windows.end(),
                   [](const RankDump& a, const RankDump& b) { return a.begin_us < b.begin_us; });
}

// Clocks of hosts may differ, so equal counts are paired in order; else each window joins the one
// of the reference that begins next to it.
std::size_t nearest(const Dumps& reference, const RankDump& window) {
  std::size_t best = 0;
  for (std::size_t at = 1; at < reference.size(); ++at)
    if (std::abs(reference[at].begin_us - window.begin_us) <
        std::abs(reference[best].begin_us - window.begin_us))
      best = at;
  return best;
}

void add_windows(Dumps dumps, DumpRuns& out) {
  std::map<std::int32_t, Dumps> by_rank;
  for (RankDump& dump : dumps) by_rank[dump.rank].push_back(std::move(dump));
  std::size_t most = 0;
  for (auto& [rank, windows] : by_rank) {
    sort_windows(windows);
    most = std::max(most, windows.size());
  }
  Dumps reference;
  for (const auto& [rank, windows] : by_rank)
    if (windows.size() == most && reference.empty())
      for (const RankDump& window : windows) reference.push_back({.begin_us = window.begin_us});
  std::vector<DumpRun> cycles(most);
  for (auto& [rank, windows] : by_rank)
    for (std::size_t at = 0; at < windows.size(); ++at) {
      const std::size_t cycle = windows.size() == most ? at : nearest(reference, windows[at]);
      const bool is_taken = !cycles[cycle].ranks.empty() && cycles[cycle].ranks.back().rank == rank;
      if (is_taken)
        out.unpaired.push_back(windows[at].path);
      else
        cycles[cycle].ranks.push_back(std::move(windows[at]));
    }
  for (DumpRun& cycle : cycles) {
    if (by_rank.size() > 1 && cycle.ranks.size() == 1)
      out.unpaired.push_back(cycle.ranks.front().path);
    out.runs.push_back(std::move(cycle));
  }
}

void add_ranks_once(Dumps dumps, DumpRuns& out) {
  std::stable_sort(dumps.begin(), dumps.end(),
                   [](const RankDump& a, const RankDump& b) { return a.rank < b.rank; });
  const auto same_rank = [](const RankDump& a, const RankDump& b) { return a.rank == b.rank; };
  dumps.erase(std::unique(dumps.begin(), dumps.end(), same_rank), dumps.end());
  out.runs.push_back({std::move(dumps)});
}

}  // namespace

DumpRuns dump_runs(std::vector<RankDump> dumps) {
  DumpRuns out;
  if (dumps.empty()) return out;
  for (Dumps& run : by_run(std::move(dumps))) {
    if (run.front().format == DumpFormat::kineto)
      add_windows(std::move(run), out);
    else
      add_ranks_once(std::move(run), out);
  }
  return out;
}

}  // namespace zeroproof

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "props/reference/rule.h"

namespace zeroproof::reference {

// What one rank did that no rule allows.
struct Finding {
  Rule rule;
  std::uint64_t lc = 0;
  std::string text;  // what happened, what was allowed, and why
};

// How much of a kind of work was judged. `units` are events, collectives or parameters at events.
struct Share {
  std::int64_t units = 0;
  std::array<std::int64_t, kFreedoms> unspecified = {};

  std::int64_t unspecified_units() const;
  double percent_unspecified() const;
  void add(const Share& other);
};

// How often each rule was applied, and how much was left open.
struct Coverage {
  std::array<std::int64_t, kRules> applied = {};
  Share parameter_time;  // of stage 3: parameters at events
  Share collectives;

  void add(const Coverage& other);
};

// The first finding of each rule, in the order in which they came, and the coverage. The parts of a
// walker write here.
class Ledger {
 public:
  void applied(Rule rule) { ++coverage_.applied[static_cast<std::size_t>(rule)]; }
  // Counts as applied, and is a finding unless `holds`.
  void check(Rule rule, bool holds, std::uint64_t lc, const std::string& text);
  template <class Text>
  void judge(Rule rule, bool holds, std::uint64_t lc, Text text) {
    applied(rule);
    if (!holds) find(rule, lc, text());
  }
  void find(Rule rule, std::uint64_t lc, std::string text);

  void count_collective() { ++coverage_.collectives.units; }
  void leave_collective(Freedom why) {
    ++coverage_.collectives.unspecified[static_cast<std::size_t>(why)];
  }
  void count_parameters(std::int64_t units) { coverage_.parameter_time.units += units; }
  void leave_parameters(Freedom why, std::int64_t units) {
    coverage_.parameter_time.unspecified[static_cast<std::size_t>(why)] += units;
  }

  const std::vector<Finding>& findings() const { return findings_; }
  const Coverage& coverage() const { return coverage_; }

 private:
  std::vector<Finding> findings_;
  std::array<bool, kRules> is_found_ = {};
  Coverage coverage_;
};

}  // namespace zeroproof::reference

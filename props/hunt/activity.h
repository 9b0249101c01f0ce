#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof::hunt {

// What judges programs: a property, a relation, or a rule of the reference walker. Static.
struct Checker {
  std::string_view name;    // "P26", "MR1", "gather.once"
  std::string_view number;  // of the property that reports it
  std::string_view sentence;
};

// All of them: properties in the order of their numbers, relations, rules.
const std::vector<Checker>& checkers();

// Monitors of events that no run of the engine has, and where they judge instead.
struct Elsewhere {
  std::string_view number;
  std::string_view why;
};
std::span<const Elsewhere> judged_elsewhere();

// In how many cases of a hunt each checker had something to judge; by name.
struct Activity {
  std::uint64_t cases = 0;
  std::map<std::string_view, std::uint64_t> active = {};

  std::uint64_t of(std::string_view name) const;
  std::string share(std::string_view name) const;  // "12 %", "under 1 %", "never"
};

// A line a checker, and how many of them had no case to judge.
std::string activity_text(const Activity& activity);
// The tables of docs/reference/properties.md.
std::string activity_markdown(const Activity& activity);

}  // namespace zeroproof::hunt

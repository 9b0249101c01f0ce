#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "zeroproof/internal/model/choice.h"

namespace zeroproof::train {

struct CaseRun;

// What was decided at one kind of place, over all executions.
struct SiteCount {
  std::string site;             // "world.next", "graph_task.ready"
  std::uint64_t choices = 0;    // with two or more options
  std::uint64_t widest = 0;     // most options
  std::set<std::string> taken;  // names of options that were taken
  // Names of options that could be taken at one moment, and of those where each of the two was
  // taken before the other in some execution; of places with few options.
  std::uint64_t pairs = 0;
  std::uint64_t pairs_in_both_orders = 0;
};

// A condition that executions reach or do not.
struct SometimesCount {
  std::string name;              // "transform_in_forward", "fault exception"
  std::uint64_t executions = 0;  // that reached it
  bool is_required = false;      // one has to
};

// What the executions of an exploration have been through. Parts of one, made by several workers,
// add up in any order to the same.
class Coverage {
 public:
  void note(const ChoicePoint& at, std::size_t taken);
  void note(const CaseRun& run);
  void add(const Coverage& other);

  std::vector<SiteCount> sites() const;  // by name
  std::vector<SometimesCount> sometimes(const std::set<std::string>& required) const;
  std::uint64_t results() const { return results_.size(); }
  std::uint64_t ends() const { return ends_.size(); }
  std::uint64_t classes() const { return classes_.size(); }

 private:
  using Name = std::uint32_t;
  struct Site {
    std::uint64_t choices = 0;
    std::uint64_t widest = 0;
    std::map<std::string, Name, std::less<>> numbers;  // of the names of options
    std::vector<bool> taken;                           // by number
    std::set<std::pair<Name, Name>> before;            // taken, while the other was possible
  };
  static Name number_of(Site& site, std::string_view name);
  static std::vector<std::string> names_of(const Site& site);

  std::map<std::string, Site, std::less<>> sites_;
  std::map<std::string, std::uint64_t> reached_;
  std::set<Fingerprint> results_;
  std::set<Fingerprint> ends_;
  std::set<Fingerprint> classes_;
};

}  // namespace zeroproof::train

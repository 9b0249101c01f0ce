#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "props/reference/world.h"

namespace zeroproof::reference {

// What backwards that keep their graphs leave for the next ones: docs/spec/zero/stage3.md 3.11 and
// docs/ENGINE.md, "Retained graphs in stage 3". No event says that a graph is kept; a module whose
// backward comes again after one forward shows that the first backward kept it.
class Retained {
 public:
  explicit Retained(const World& world) : world_(world), is_lost_(world.parameters.size()) {}

  void begin_forward(std::size_t module, bool is_recompute);
  // `task`: the number of the outermost graph task.
  void begin_backward(std::int64_t task);
  void end_backward(std::size_t module);
  // Values were given up by other means than a module's end.
  void lose(std::size_t parameter) { is_lost_[parameter] = true; }
  // A backward has failed, or values change.
  void clear();

  // Whether the module's backward, which begins in `task`, finds its parameters kept for sure.
  bool is_kept(std::size_t module, std::int64_t task) const;
  bool is_kept_parameter(std::size_t parameter) const { return !is_lost_[parameter]; }
  // Whether a module may have kept anything at all.
  bool may_keep(std::size_t module) const;

  // What has been reclaimed since the last clear; the sum of elements.
  std::int64_t reclaim(std::size_t parameter, std::int64_t task);

 private:
  struct Calls {
    int forwards = 0;  // since the last clear
    bool is_recomputed = false;
    std::int64_t ended_in = -1;  // the task of its last complete backward
  };

  const World& world_;
  std::map<std::size_t, Calls> calls_;  // by module
  std::vector<bool> is_lost_;           // by parameter
  std::set<std::size_t> reclaimed_;     // in `task_`
  std::int64_t task_ = -1;              // that reclaims
  std::int64_t current_ = -1;           // that has a backward of this engine
  std::int64_t previous_ = -1;          // the one before
};

}  // namespace zeroproof::reference

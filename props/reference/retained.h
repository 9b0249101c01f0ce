#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "props/reference/world.h"

namespace zeroproof::reference {

// What backwards that keep their graphs leave for the next ones: docs/spec/zero/stage3.md 3.11 and
// docs/ENGINE.md, "Retained graphs in stage 3". No event says that a graph is kept, nor which
// forward a backward belongs to. A module whose backward comes again although each of its forwards
// has had one shows that the first backward kept it.
class Retained {
 public:
  explicit Retained(const World& world) : world_(world), is_lost_(world.parameters.size()) {}

  void begin_forward(std::size_t module, bool is_recompute);
  // `task`: the number of the outermost graph task.
  void begin_backward(std::size_t module, std::int64_t task);
  void end_backward(std::size_t module);
  // Values were given up by other means than a module's end.
  void lose(std::size_t parameter) { is_lost_[parameter] = true; }
  // A backward has failed, or values change.
  void clear();

  // Whether the module's backward, which begins in the running task, finds its parameters kept.
  bool is_kept(std::size_t module) const;
  bool is_kept_parameter(std::size_t parameter) const { return !is_lost_[parameter]; }
  // Whether a module may have kept anything at all.
  bool may_keep(std::size_t module) const;

  // What has been reclaimed in the task; the sum of elements.
  std::int64_t reclaim(std::size_t parameter, std::int64_t task);

 private:
  struct Calls {
    int forwards = 0;            // without a backward
    bool is_sure = true;         // every one of them is known to have had one, or none
    std::int64_t begun_in = -1;  // the task of its last backward
    std::int64_t ended_in = -1;
    std::int64_t kept_from = -1;  // the task before the running one, if that ended all its calls
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

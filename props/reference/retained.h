#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "props/reference/uses.h"
#include "props/reference/world.h"

namespace zeroproof::reference {

// What backwards that keep their graphs leave for the next ones: docs/spec/zero/stage3.md 3.11 and
// docs/explanation/engine.md, "Retained graphs in stage 3". No event says that a graph is kept. A
// call whose backward comes again shows that the first one kept it. Where calls have no numbers,
// that is a module whose backward comes again although each of its forwards has had one.
class Retained {
 public:
  explicit Retained(const World& world)
      : world_(world),
        is_lost_(world.parameters.size()),
        may_be_admitted_(world.parameters.size()) {}

  // `forward`: the number of the outermost forward that calls it.
  void begin_forward(ModuleCall call, std::int64_t forward, bool is_recompute);
  // `graph`: the forward that it was part of, as the event says; -1: none that is kept, or not
  // known. `task`: the number of the outermost graph task.
  void begin_backward(ModuleCall call, std::int64_t graph, std::int64_t task);
  void end_backward(ModuleCall call);
  // Values were given up by other means than a module's end.
  void lose(std::size_t parameter) { is_lost_[parameter] = true; }
  // A backward has failed, or values change.
  void clear();

  // Whether the call's backward, which begins in the running task, finds its parameters kept.
  bool is_kept(ModuleCall call) const;
  bool is_kept_parameter(std::size_t parameter) const { return !is_lost_[parameter]; }
  // Whether a call may have kept anything at all.
  bool may_keep(ModuleCall call) const;
  // Whether some call may have kept it.
  bool may_be_kept(std::size_t parameter) const { return may_be_admitted_[parameter]; }

  // What has been reclaimed in the task; the sum of elements.
  std::int64_t reclaim(std::size_t parameter, std::int64_t task);

 private:
  struct Calls {
    int forwards = 0;            // without a backward
    bool is_sure = true;         // every one of them is known to have had one, or none
    std::int64_t graph = -1;     // of its last backward
    std::int64_t begun_in = -1;  // the task of its last backward
    std::int64_t ended_in = -1;
    std::int64_t kept_from = -1;  // the task before the running one, if that ended all its calls
  };
  // Tasks that had a backward of a graph.
  struct Tasks {
    std::int64_t current = -1;
    std::int64_t previous = -1;
  };

  bool may_be_of_kept_graph(ModuleCall call, const Calls& calls) const {
    return !call.is_known() || calls.graph >= 0;
  }

  const World& world_;
  std::map<ModuleCall, Calls> calls_;
  std::map<ModuleCall, std::int64_t> made_in_;  // which forward has made a call
  std::map<std::int64_t, Tasks> tasks_;         // by graph
  std::vector<bool> is_lost_;                   // by parameter
  std::vector<bool> may_be_admitted_;           // the same
  std::set<std::size_t> reclaimed_;             // in `task_`
  std::int64_t task_ = -1;                      // that reclaims
};

}  // namespace zeroproof::reference

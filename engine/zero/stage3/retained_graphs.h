#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "engine/zero/stage3/parameter_gatherer.h"
#include "engine/zero/stage3/zero3_module.h"

namespace zeroproof {

// Which module, in which of its calls, wants its parameters.
struct ModuleCall {
  Zero3Module* module = nullptr;
  std::int64_t invocation = 0;
  std::int64_t graph = -1;  // the forward that it was part of; -1: of none that may be retained
};

// The calls of modules whose backward has ended and whose graph was retained (docs/spec/zero.md
// 3.11). What they need is released like everything else, but its values are kept for them until
// a backward that does not retain the graph is over, the graph is gone, a backward fails, or the
// values change.
//
// A rank may keep a graph longer than others. Which parameters are gathered does not depend on
// that: only the call for which values are kept reclaims them, every other call gathers again. So
// sums here count what was held, whether or not its graph still lives.
class RetainedGraphs {
 public:
  // Of all parameters together at most `elements_max` are kept; what comes later is not.
  RetainedGraphs(ParameterGatherer& gatherer, std::int64_t elements_max)
      : gatherer_(gatherer), elements_max_(elements_max) {}

  void hold(const ModuleCall& call);
  bool is_held(const PartitionedParameter& parameter) const {
    return holders_.contains(parameter.id());
  }
  // Whole again without a gather, for the next backward of a call that holds them.
  void restore_cached(const ModuleCall& call);
  // What may be kept and is no live parameter otherwise.
  std::int64_t kept_elements_max() const;

  // A backward that did not retain it is over.
  void end(std::int64_t graph);
  // Its part of the graph is gone.
  void forget(const ModuleCall& call);
  void clear();

 private:
  template <class IsEnded>
  void drop_holders(IsEnded is_ended);
  bool admit(const PartitionedParameter& parameter);

  ParameterGatherer& gatherer_;
  std::int64_t elements_max_;
  std::map<ParamId, std::vector<ModuleCall>> holders_;  // never empty lists
  std::set<std::int64_t> graphs_;                       // since the last clear, not ended
  std::set<ParamId> admitted_;
  std::int64_t admitted_elements_ = 0;
};

}  // namespace zeroproof

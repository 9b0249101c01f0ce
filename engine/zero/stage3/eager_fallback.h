#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/zero/stage3/parameter_gatherer.h"
#include "zeroproof/engine/fallback_rule.h"

namespace zeroproof {

// Parameters of compiled modules whose frames the compiler skipped (docs/spec/zero.md 5, #8157): no
// module hook gathers them, so they are gathered when they are read, and given back when no graph
// needs them. Each forward that can have a backward is a graph; it claims what it read until a
// backward that reached it completes. A parameter with a claim, or in a user's context, stays.
//
// At most one fallback owns a parameter. Both references must outlive it. Not thread-safe.
class EagerFallback final : public ParameterClaims {
 public:
  EagerFallback(ZeroContext& context, ParameterGatherer& gatherer);
  ~EagerFallback() override;
  EagerFallback(const EagerFallback&) = delete;
  EagerFallback& operator=(const EagerFallback&) = delete;

  using Graph = std::int64_t;

  void begin_forward();
  // The forward returned or threw; `has_graph`: it returned something that a backward can reach.
  std::optional<Graph> end_forward(bool has_graph);
  // Eager code reads a parameter.
  void read(PartitionedParameter& parameter);
  // While the compiler evaluates its guards, a read does not gather.
  void set_guard_evaluation(bool is_evaluating) { is_guard_evaluation_ = is_evaluating; }

  void start_backward(Graph graph);  // its prologue ran
  void end_backward();               // an epilogue, of whatever backward
  // The user gives up every forward that has had no backward yet.
  void release_gathered();

  // A user's context ends: whether the parameter must stay for a graph. The slice takes its changes
  // at once, where upstream's takes them when it is released: a checkpoint in between has them.
  bool keeps(PartitionedParameter& parameter, bool has_been_updated) override;
  void forget(PartitionedParameter& parameter) override;

  // What it has gathered so far, ever; of those, how many are tracked now.
  std::int64_t gathers() const { return gathers_; }
  std::size_t tracked() const { return tracked_.size(); }
  std::size_t outstanding() const { return claims_.size(); }
  const std::vector<ParamId>& suppressed() const { return suppressed_; }  // reads by guards

 private:
  bool has_claim(const PartitionedParameter& parameter) const;
  void release_unclaimed();
  void release_unowned();
  void partition(PartitionedParameter& parameter);
  void report(const char* method, Graph graph, const std::set<ParamId>& parameters) const;
  PartitionedParameter& of(ParamId id) const;

  ZeroContext& context_;
  ParameterGatherer& gatherer_;
  std::set<ParamId> tracked_;
  std::set<ParamId> current_;                  // read in the running forward
  std::map<Graph, std::set<ParamId>> claims_;  // of the outstanding graphs
  std::set<Graph> started_;                    // of those: their backward began
  std::vector<ParamId> suppressed_;
  Graph next_graph_ = 0;
  std::int64_t gathers_ = 0;
  int depth_ = 0;
  bool is_guard_evaluation_ = false;
};

}  // namespace zeroproof

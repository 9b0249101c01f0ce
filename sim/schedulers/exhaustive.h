#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/scheduler.h"

namespace zeroproof {

enum class Pruning {
  by_fingerprint,  // a state is explored once; see RunFunction for what this asks of a world
  off,             // every order is run; for worlds without fingerprints, and as the reference
};

// Depth-first search in dictionary order by running the world again from its beginning for each
// new branch. For each state it remembers how many complete executions lie below, so that
// complete_orders is exact although most of them are never run.
class ExhaustiveScheduler final : public Scheduler {
 public:
  explicit ExhaustiveScheduler(Pruning pruning = Pruning::by_fingerprint) : pruning_(pruning) {}

  bool new_execution() override;
  std::size_t choose(const ChoicePoint& at) override;
  void end_execution(const ExecutionEnd& end) override;
  SchedulerStats stats() const override;
  std::optional<std::string> divergence() const override { return divergence_; }

 private:
  struct Step {  // one choice point of the current execution
    Fingerprint state;
    std::uint32_t options = 0;
    std::uint32_t taken = 0;
    OrderCount below;  // complete executions through the options done so far
  };
  struct Known {
    OrderCount below;
    bool is_open = true;  // on the current path: its count is not complete
  };
  struct LowBits {
    std::size_t operator()(const Fingerprint& state) const { return state.low; }
  };

  std::size_t follow(const ChoicePoint& at);
  std::size_t enter(const ChoicePoint& at);
  void close_branch(OrderCount below);

  Pruning pruning_;
  std::vector<Step> path_;
  std::size_t depth_ = 0;                                  // choice points met in this execution
  std::optional<OrderCount> cut_below_;                    // of the known state that ended it
  std::unordered_map<Fingerprint, Known, LowBits> known_;  // looked up, never iterated
  OrderCount total_;
  std::uint64_t transitions_ = 0;
  bool has_started_ = false;
  bool has_exhausted_ = false;
  bool has_cycle_ = false;
  bool is_unfinished_ = false;  // somebody else cut an execution
  std::optional<std::string> divergence_;
};

}  // namespace zeroproof

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "props/interpreter/observation.h"
#include "props/interpreter/tree_module.h"
#include "props/program/program.h"
#include "zeroproof/engine/engine.h"

namespace zeroproof::program {

// What engines and reference do alike.

inline constexpr std::uint64_t kModelSeed = 7;  // of the first engine's weights

// The prefix of an engine's names: none for the first.
std::string engine_prefix(const Program& program, std::size_t engine);
void observe(Observations& seen, Observed what, const std::string& prefix,
             const std::vector<FullTensor>& tensors);
// Whether a step was applied or overflowed, and its norm.
void observe_outcome(Observations& seen, const std::string& prefix, const StepOutcome& outcome);
// Of a step() within a window, which only counts.
void observe_counted_step(Observations& seen, const std::string& prefix,
                          const StepOutcome& outcome);
// Prefixes of the parameters that no group lists.
std::vector<std::string> ungrouped_prefixes(TreeModule& module, const Model& model);
// The parameter groups that the optimizer of an engine is given: what is trained, in turns; with
// what is frozen, if the groups list it. Empty: one group of all that is trained.
std::vector<TensorList> parameter_groups_of(const Program& program, std::size_t engine,
                                            TreeModule& module);

// True while it lives; then what it was.
class ScopedFlag {
 public:
  explicit ScopedFlag(bool& flag) : flag_(flag), before_(std::exchange(flag, true)) {}
  ~ScopedFlag() { flag_ = before_; }
  ScopedFlag(const ScopedFlag&) = delete;
  ScopedFlag& operator=(const ScopedFlag&) = delete;

 private:
  bool& flag_;
  bool before_;
};

// One more while it lives.
class ScopedCount {
 public:
  explicit ScopedCount(int& count) : count_(count) { ++count_; }
  ~ScopedCount() { --count_; }
  ScopedCount(const ScopedCount&) = delete;
  ScopedCount& operator=(const ScopedCount&) = delete;

 private:
  int& count_;
};

}  // namespace zeroproof::program

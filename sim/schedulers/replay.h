#pragma once

#include <optional>
#include <string>

#include "sim/schedule.h"
#include "sim/scheduler.h"

namespace zeroproof {

enum class ReplayFit {
  exact,    // every choice must exist and be used: a difference is a divergence
  lenient,  // a missing choice, or one out of range, is 0: for shrinking
};

// One execution that follows recorded choices.
class ReplayScheduler final : public Scheduler {
 public:
  explicit ReplayScheduler(Choices choices, ReplayFit fit = ReplayFit::exact);

  bool new_execution() override;
  std::size_t choose(const ChoicePoint& at) override;
  void end_execution(const ExecutionEnd& end) override;
  std::optional<std::string> divergence() const override { return divergence_; }

 private:
  Choices choices_;
  ReplayFit fit_;
  std::size_t next_ = 0;
  bool has_run_ = false;
  std::optional<std::string> divergence_;
};

}  // namespace zeroproof

#pragma once

#include <optional>
#include <string>

#include "sim/schedule.h"
#include "sim/scheduler.h"

namespace zeroproof {

// Keeps the choices of the current execution of another scheduler.
class RecordScheduler final : public Scheduler {
 public:
  explicit RecordScheduler(Scheduler& inner) : inner_(inner) {}

  // Those of the execution that ran last; a cut execution has those up to the cut.
  const Choices& choices() const { return choices_; }

  bool new_execution() override;
  std::size_t choose(const ChoicePoint& at) override;
  void end_execution(const ExecutionEnd& end) override { inner_.end_execution(end); }
  SchedulerStats stats() const override { return inner_.stats(); }
  std::optional<std::string> divergence() const override { return inner_.divergence(); }

 private:
  Scheduler& inner_;
  Choices choices_;
};

}  // namespace zeroproof

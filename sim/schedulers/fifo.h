#pragma once

#include "sim/scheduler.h"

namespace zeroproof {

// One execution that always takes the first option: the order a world prefers.
class FifoScheduler final : public Scheduler {
 public:
  bool new_execution() override;
  std::size_t choose(const ChoicePoint&) override { return 0; }
  void end_execution(const ExecutionEnd&) override {}

 private:
  bool has_run_ = false;
};

}  // namespace zeroproof

#pragma once

#include <cstdint>

#include "sim/scheduler.h"

namespace zeroproof::train {

// Which executions of a scheduler somebody runs: number `first`, and every `stride`-th after it.
struct Deal {
  std::uint64_t first = 0;
  std::uint64_t stride = 1;

  std::uint64_t number(std::uint64_t own) const { return first + own * stride; }
  // Of so many.
  std::uint64_t share(std::uint64_t executions) const {
    return executions <= first ? 0 : (executions - first + stride - 1) / stride;
  }
};

// Only those of a deal; the executions of the inner scheduler must not depend on each other.
class DealtScheduler final : public Scheduler {
 public:
  DealtScheduler(Scheduler& inner, const Deal& deal) : inner_(inner), deal_(deal) {}

  bool new_execution() override {
    const std::uint64_t steps = has_begun_ ? deal_.stride : deal_.first + 1;
    has_begun_ = true;
    for (std::uint64_t i = 0; i < steps; ++i)
      if (!inner_.new_execution()) return false;
    return true;
  }
  std::size_t choose(const ChoicePoint& at) override { return inner_.choose(at); }
  void end_execution(const ExecutionEnd& end) override { inner_.end_execution(end); }
  SchedulerStats stats() const override { return inner_.stats(); }
  std::optional<std::string> divergence() const override { return inner_.divergence(); }

 private:
  Scheduler& inner_;
  Deal deal_;
  bool has_begun_ = false;
};

}  // namespace zeroproof::train

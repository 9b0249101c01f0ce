#pragma once

#include <cstdint>
#include <memory>

#include "sim/scheduler.h"

namespace zeroproof {

// Uniform choices from pcg32, without end. Execution i draws from its own stream of the seed, so
// it is the same whatever the executions before it did.
class RandomScheduler final : public Scheduler {
 public:
  explicit RandomScheduler(std::uint64_t seed);
  ~RandomScheduler() override;

  bool new_execution() override;
  std::size_t choose(const ChoicePoint& at) override;
  void end_execution(const ExecutionEnd&) override {}

 private:
  struct Generator;
  std::uint64_t seed_;
  std::uint64_t next_execution_ = 0;
  std::unique_ptr<Generator> generator_;
};

}  // namespace zeroproof

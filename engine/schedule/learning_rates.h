#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/checkpoint/training_state.h"
#include "engine/schedule/rate_schedule.h"

namespace zeroproof {

// The learning rates of an engine's parameter groups, and the scheduler that moves them, where
// there is one. Copies are independent.
class LearningRates {
 public:
  // The rates of the configured optimizer, or those with which its scheduler begins. An error
  // where the scheduler's lists do not fit `groups`, of which there is always one.
  static Result<LearningRates> make(const ZeroConfig& config, std::size_t groups);

  const std::vector<GroupRates>& groups() const { return groups_; }
  bool has_schedule() const { return schedule_ != nullptr; }

  // Until the scheduler's next step. An error names a value that is not finite, or negative, or a
  // group that is not there.
  Result<void> set(double learning_rate);
  Result<void> set(std::size_t group, double learning_rate);

  // An optimizer step was taken, without overflow: the scheduler's next rates.
  void step();

  // Adds the rates to `state.groups`, and the scheduler's state.
  void save(TrainingState& state) const;
  // What keeps restore() from working: the state of no scheduler, or of another one. `path` is for
  // the message.
  Result<void> check(const TrainingState& saved, const std::string& path) const;
  // Rates as they were saved; `has_schedule`: and the scheduler's state.
  void restore(const TrainingState& saved, bool has_schedule);

 private:
  Result<void> check_rate(double learning_rate) const;

  std::vector<GroupRates> groups_;
  std::shared_ptr<const RateSchedule> schedule_;  // null: none
  SchedulerState state_;
};

}  // namespace zeroproof

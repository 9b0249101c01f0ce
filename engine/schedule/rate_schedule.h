#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/schedule/group_rates.h"
#include "zeroproof/engine/schedule/scheduler_config.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// The arithmetic of one of DeepSpeed's schedulers, without state: an iteration's rates follow from
// its number alone. Double precision, operation by operation as in Python.
class RateSchedule {
 public:
  virtual ~RateSchedule() = default;

  // What the groups have before the first step.
  virtual void begin(std::vector<GroupRates>& groups) const = 0;
  // What they have after the step that makes `iteration` the last one, counted from 0.
  virtual void advance(std::int64_t iteration, std::vector<GroupRates>& groups) const = 0;
};

// `groups`: as the optimizer was made. An error unless each list has a number for each group.
Result<std::shared_ptr<const RateSchedule>> make_rate_schedule(
    const SchedulerConfig& config, const std::vector<GroupRates>& groups);

// What DeepSpeed refuses, "/scheduler/params/NAME is ..."; empty where it does not.
std::string problem_of(const SchedulerConfig& config);

}  // namespace zeroproof

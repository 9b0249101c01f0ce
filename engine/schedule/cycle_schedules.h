#pragma once

#include "engine/schedule/rate_schedule.h"

namespace zeroproof {

// LRRangeTest.
class LrRangeTestSchedule final : public RateSchedule {
 public:
  LrRangeTestSchedule(const LrRangeTestOptions& options, std::vector<double> least);

  void begin(std::vector<GroupRates>& groups) const override;
  void advance(std::int64_t iteration, std::vector<GroupRates>& groups) const override;

 private:
  LrRangeTestOptions options_;
  std::vector<double> least_;
};

// OneCycle. Groups with betas get (momentum, 0.99).
class OneCycleSchedule final : public RateSchedule {
 public:
  struct Bounds {
    std::vector<double> least;
    std::vector<double> greatest;
  };
  OneCycleSchedule(const OneCycleOptions& options, Bounds rates, Bounds momentums);

  void begin(std::vector<GroupRates>& groups) const override;
  void advance(std::int64_t iteration, std::vector<GroupRates>& groups) const override;

 private:
  // How far the cycle is from its ends: 0 there, 1 at the top.
  double height(double batch) const;
  double decay_factor(double rate, double batches) const;

  OneCycleOptions options_;
  double second_size_;
  double total_size_;
  Bounds rates_;
  Bounds momentums_;
};

}  // namespace zeroproof

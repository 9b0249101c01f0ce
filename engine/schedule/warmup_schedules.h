#pragma once

#include "engine/schedule/rate_schedule.h"

namespace zeroproof {

// The part of a warmup that an iteration has done, 0 to 1.
class WarmupRamp {
 public:
  explicit WarmupRamp(const Warmup& warmup);

  std::int64_t steps() const { return steps_; }
  bool is_over(std::int64_t iteration) const { return iteration >= steps_; }
  double part(std::int64_t iteration) const;

 private:
  std::int64_t steps_;
  WarmupType type_;
  double inverse_log_;
};

// WarmupLR: from least to greatest rates, which then stay.
class WarmupSchedule : public RateSchedule {
 public:
  WarmupSchedule(const Warmup& warmup, std::vector<double> least, std::vector<double> greatest);

  void begin(std::vector<GroupRates>& groups) const override;
  void advance(std::int64_t iteration, std::vector<GroupRates>& groups) const override;

 protected:
  const WarmupRamp& ramp() const { return ramp_; }

 private:
  virtual double after_warmup(std::int64_t /*iteration*/) const { return 1.0; }

  WarmupRamp ramp_;
  std::vector<double> least_;
  std::vector<double> greatest_;
};

// WarmupDecayLR: and down again, in a straight line.
class WarmupDecaySchedule final : public WarmupSchedule {
 public:
  WarmupDecaySchedule(const WarmupDecayLrOptions& options, std::vector<double> least,
                      std::vector<double> greatest);

 private:
  double after_warmup(std::int64_t iteration) const override;

  double total_;
};

// WarmupCosineLR: ratios of what each group had.
class WarmupCosineSchedule final : public RateSchedule {
 public:
  WarmupCosineSchedule(const WarmupCosineLrOptions& options, std::vector<double> own);

  void begin(std::vector<GroupRates>& groups) const override;
  void advance(std::int64_t iteration, std::vector<GroupRates>& groups) const override;

 private:
  double ratio(std::int64_t iteration) const;

  WarmupCosineLrOptions options_;
  WarmupRamp ramp_;
  std::vector<double> own_;
};

}  // namespace zeroproof

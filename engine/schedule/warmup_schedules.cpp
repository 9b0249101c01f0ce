#include "engine/schedule/warmup_schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace zeroproof {

WarmupRamp::WarmupRamp(const Warmup& warmup)
    : steps_(std::max<std::int64_t>(2, warmup.warmup_num_steps)),
      type_(warmup.warmup_type),
      inverse_log_(1.0 / std::log(static_cast<double>(steps_))) {}

double WarmupRamp::part(std::int64_t iteration) const {
  if (type_ == WarmupType::log) return inverse_log_ * std::log(static_cast<double>(iteration + 1));
  return static_cast<double>(iteration) / static_cast<double>(steps_);
}

WarmupSchedule::WarmupSchedule(const Warmup& warmup, std::vector<double> least,
                               std::vector<double> greatest)
    : ramp_(warmup), least_(std::move(least)), greatest_(std::move(greatest)) {}

void WarmupSchedule::begin(std::vector<GroupRates>& groups) const {
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].learning_rate = least_[i];
}

void WarmupSchedule::advance(std::int64_t iteration, std::vector<GroupRates>& groups) const {
  const double part = ramp_.is_over(iteration) ? after_warmup(iteration) : ramp_.part(iteration);
  for (std::size_t i = 0; i < groups.size(); ++i)
    groups[i].learning_rate = least_[i] + (greatest_[i] - least_[i]) * part;
}

WarmupDecaySchedule::WarmupDecaySchedule(const WarmupDecayLrOptions& options,
                                         std::vector<double> least, std::vector<double> greatest)
    : WarmupSchedule(options.warmup, std::move(least), std::move(greatest)),
      total_(options.total_num_steps) {}

double WarmupDecaySchedule::after_warmup(std::int64_t iteration) const {
  const double steps = std::max(1.0, total_ - static_cast<double>(ramp().steps()));
  return std::max(0.0, (total_ - static_cast<double>(iteration)) / steps);
}

WarmupCosineSchedule::WarmupCosineSchedule(const WarmupCosineLrOptions& options,
                                           std::vector<double> own)
    : options_(options), ramp_(options.warmup), own_(std::move(own)) {}

void WarmupCosineSchedule::begin(std::vector<GroupRates>& groups) const {
  for (GroupRates& group : groups) group.learning_rate = 0.0;
}

void WarmupCosineSchedule::advance(std::int64_t iteration, std::vector<GroupRates>& groups) const {
  const double of = ratio(iteration);
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].learning_rate = own_[i] * of;
}

// The half cosine stays at its end.
double WarmupCosineSchedule::ratio(std::int64_t iteration) const {
  if (!ramp_.is_over(iteration)) {
    const double least = options_.warmup_min_ratio;
    return least + ramp_.part(iteration) * (1.0 - least);
  }
  const auto last = static_cast<double>(iteration - ramp_.steps() + 1);
  const double steps = std::max(1.0, options_.total_num_steps - static_cast<double>(ramp_.steps()));
  const double progress = std::min(1.0, last / steps);
  const double cosine = (1.0 + std::cos(std::numbers::pi * progress)) / 2.0;
  const double least = options_.cos_min_ratio;
  return std::max(0.0, least + (1.0 - least) * cosine);
}

}  // namespace zeroproof

#include "engine/schedule/cycle_schedules.h"

#include <cmath>
#include <utility>

namespace zeroproof {
namespace {

constexpr double kCycledBeta2 = 0.99;

}  // namespace

LrRangeTestSchedule::LrRangeTestSchedule(const LrRangeTestOptions& options,
                                         std::vector<double> least)
    : options_(options), least_(std::move(least)) {}

void LrRangeTestSchedule::begin(std::vector<GroupRates>& groups) const {
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].learning_rate = least_[i];
}

void LrRangeTestSchedule::advance(std::int64_t iteration, std::vector<GroupRates>& groups) const {
  const double exact =
      static_cast<double>(iteration + 1) / static_cast<double>(options_.lr_range_test_step_size);
  const double intervals = options_.lr_range_test_staircase ? std::floor(exact) : exact;
  const double increase = 1.0 + options_.lr_range_test_step_rate * intervals;
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].learning_rate = least_[i] * increase;
}

OneCycleSchedule::OneCycleSchedule(const OneCycleOptions& options, Bounds rates, Bounds momentums)
    : options_(options),
      second_size_(options.cycle_second_step_size.value_or(options.cycle_first_step_size)),
      total_size_(options.cycle_first_step_size + second_size_),
      rates_(std::move(rates)),
      momentums_(std::move(momentums)) {}

// The momentum begins at its least value, and is at its greatest after a step.
void OneCycleSchedule::begin(std::vector<GroupRates>& groups) const {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].learning_rate = rates_.least[i];
    if (options_.cycle_momentum && groups[i].betas)
      groups[i].betas = AdamBetas{momentums_.least[i], kCycledBeta2};
  }
}

void OneCycleSchedule::advance(std::int64_t iteration, std::vector<GroupRates>& groups) const {
  const auto last = static_cast<double>(iteration);
  const bool is_cycling = last < total_size_;
  const double height_now = is_cycling ? height(last + 1.0) : 0.0;
  const double batches = last - total_size_ + 1.0;
  const double lr_decay = is_cycling ? 1.0 : decay_factor(options_.decay_lr_rate, batches);
  const double mom_decay = is_cycling ? 1.0 : decay_factor(options_.decay_mom_rate, batches);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const double rise = (rates_.greatest[i] - rates_.least[i]) * height_now;
    groups[i].learning_rate = is_cycling ? rates_.least[i] + rise : rates_.least[i] / lr_decay;
    if (!options_.cycle_momentum || !groups[i].betas) continue;
    const double greatest = momentums_.greatest[i];
    const double fall = (greatest - momentums_.least[i]) * height_now;
    groups[i].betas = {is_cycling ? greatest - fall : greatest * mom_decay, kCycledBeta2};
  }
}

// 1 where no rate decays.
double OneCycleSchedule::decay_factor(double rate, double batches) const {
  if (options_.decay_step_size == 0.0 || rate == 0.0) return 1.0;
  return 1.0 + rate * (batches / options_.decay_step_size);
}

// Stairs are counted from the whole number of the batch: the height may be just below a stair.
double OneCycleSchedule::height(double batch) const {
  const double first_size = options_.cycle_first_step_size;
  const double first_part = first_size / total_size_;
  const double cycle = std::floor(1.0 + batch / total_size_);
  const double at = 1.0 + batch / total_size_ - cycle;
  const bool is_rising = at <= first_part;
  const double first_stairs = options_.cycle_first_stair_count;
  const double stairs =
      is_rising ? first_stairs : options_.cycle_second_stair_count.value_or(first_stairs);
  if (stairs <= 0.0) return is_rising ? at / first_part : (at - 1.0) / (first_part - 1.0);
  const double in_cycle = std::fmod(batch, total_size_);
  const double position = in_cycle <= first_size ? in_cycle * stairs / first_size
                                                 : (total_size_ - in_cycle) * stairs / second_size_;
  return std::floor(position) / stairs;
}

}  // namespace zeroproof

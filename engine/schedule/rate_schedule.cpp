#include "engine/schedule/rate_schedule.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "engine/schedule/cycle_schedules.h"
#include "engine/schedule/group_lists.h"
#include "engine/schedule/warmup_schedules.h"

namespace zeroproof {
namespace {

using Made = std::shared_ptr<const RateSchedule>;

std::vector<double> own_rates(const std::vector<GroupRates>& groups) {
  std::vector<double> own;
  for (const GroupRates& group : groups) own.push_back(group.learning_rate);
  return own;
}

// Makes the schedule of each kind of options.
struct Maker {
  const std::vector<GroupRates>& groups;
  GroupLists& lists;

  Made operator()(const LrRangeTestOptions& options) const {
    return std::make_shared<LrRangeTestSchedule>(
        options, lists.of("lr_range_test_min_lr", options.lr_range_test_min_lr));
  }
  Made operator()(const OneCycleOptions& options) const {
    OneCycleSchedule::Bounds rates{lists.of("cycle_min_lr", options.cycle_min_lr),
                                   lists.of("cycle_max_lr", options.cycle_max_lr)};
    OneCycleSchedule::Bounds momentums;
    const bool has_betas = !groups.empty() && groups.front().betas.has_value();
    if (options.cycle_momentum && has_betas)
      momentums = {lists.of("cycle_min_mom", options.cycle_min_mom),
                   lists.of("cycle_max_mom", options.cycle_max_mom)};
    return std::make_shared<OneCycleSchedule>(options, std::move(rates), std::move(momentums));
  }
  Made operator()(const WarmupLrOptions& options) const {
    return std::make_shared<WarmupSchedule>(options.warmup, least(options), greatest(options));
  }
  Made operator()(const WarmupDecayLrOptions& options) const {
    return std::make_shared<WarmupDecaySchedule>(options, least(options), greatest(options));
  }
  Made operator()(const WarmupCosineLrOptions& options) const {
    return std::make_shared<WarmupCosineSchedule>(options, own_rates(groups));
  }

  template <class Options>
  std::vector<double> least(const Options& options) const {
    return lists.of("warmup_min_lr", options.warmup_min_lr);
  }
  template <class Options>
  std::vector<double> greatest(const Options& options) const {
    return options.warmup_max_lr ? lists.of("warmup_max_lr", *options.warmup_max_lr)
                                 : own_rates(groups);
  }
};

std::string problem(std::string_view name, double value, std::string_view wanted) {
  return fmt::format("/scheduler/params/{} is {}; give {}", name, value, wanted);
}

// Whether 1 + rate * k / size is 0 for some step k, by which the learning rate is divided.
bool divides_by_zero(double rate, double size) {
  if (rate == 0.0 || size == 0.0) return false;
  const double step = std::round(-size / rate);
  return step >= 1.0 && 1.0 + rate * (step / size) == 0.0;
}

struct Problem {
  std::string operator()(const LrRangeTestOptions& options) const {
    if (options.lr_range_test_step_size >= 1) return {};
    return problem("lr_range_test_step_size", static_cast<double>(options.lr_range_test_step_size),
                   "a positive whole number");
  }
  std::string operator()(const OneCycleOptions& options) const {
    if (options.cycle_first_step_size <= 0.0)
      return problem("cycle_first_step_size", options.cycle_first_step_size, "a positive number");
    if (options.cycle_second_step_size.value_or(0.0) < 0.0)
      return problem("cycle_second_step_size", *options.cycle_second_step_size,
                     "a number of at least 0");
    if (divides_by_zero(options.decay_lr_rate, options.decay_step_size))
      return problem("decay_lr_rate", options.decay_lr_rate,
                     "a rate that does not divide by 0 in some step");
    return {};
  }
  std::string operator()(const WarmupLrOptions& options) const { return of(options.warmup); }
  std::string operator()(const WarmupDecayLrOptions& options) const { return of(options.warmup); }
  std::string operator()(const WarmupCosineLrOptions& options) const { return of(options.warmup); }

  static std::string of(const Warmup& warmup) {
    if (warmup.warmup_num_steps >= 1) return {};
    return problem("warmup_num_steps", static_cast<double>(warmup.warmup_num_steps),
                   "a positive whole number");
  }
};

}  // namespace

std::string_view scheduler_name(const SchedulerConfig& config) {
  constexpr std::array<std::string_view, std::variant_size_v<ScheduleOptions>> kNames = {
      "LRRangeTest", "OneCycle", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR"};
  return kNames[config.options.index()];
}

Result<std::shared_ptr<const RateSchedule>> make_rate_schedule(
    const SchedulerConfig& config, const std::vector<GroupRates>& groups) {
  GroupLists lists(groups.size());
  Made made = std::visit(Maker{groups, lists}, config.options);
  if (!lists.problem().empty()) return fail(ErrorCode::usage, lists.problem());
  return made;
}

std::string problem_of(const SchedulerConfig& config) {
  if (config.last_batch_iteration < -1)
    return problem("last_batch_iteration", static_cast<double>(config.last_batch_iteration),
                   "a whole number of at least -1");
  return std::visit(Problem{}, config.options);
}

}  // namespace zeroproof

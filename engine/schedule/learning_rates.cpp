#include "engine/schedule/learning_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace zeroproof {
namespace {

constexpr const char* kRate = "lr";
constexpr const char* kBeta1 = "beta1";
constexpr const char* kBeta2 = "beta2";

// The saved number, or `own` where an older checkpoint lacks it.
double saved_or(const ParameterGroup& group, const char* name, double own) {
  const auto at = group.hyper_parameters.find(name);
  return at == group.hyper_parameters.end() ? own : at->second;
}

}  // namespace

Result<LearningRates> LearningRates::make(const ZeroConfig& config, std::size_t groups) {
  LearningRates rates;
  rates.groups_.assign(std::max<std::size_t>(1, groups), rates_of(config.optimizer));
  if (!config.scheduler) return rates;
  auto schedule = make_rate_schedule(*config.scheduler, rates.groups_);
  if (!schedule) return tl::unexpected(schedule.error());
  rates.schedule_ = std::move(*schedule);
  rates.state_ = {std::string(scheduler_name(*config.scheduler)),
                  config.scheduler->last_batch_iteration};
  if (rates.state_.last_batch_iteration == -1) rates.schedule_->begin(rates.groups_);
  return rates;
}

Result<void> LearningRates::check_rate(double learning_rate) const {
  if (std::isfinite(learning_rate) && learning_rate >= 0.0) return {};
  return fail(
      ErrorCode::usage,
      fmt::format("the learning rate is {}; give a finite number of at least 0", learning_rate));
}

Result<void> LearningRates::set(double learning_rate) {
  if (auto valid = check_rate(learning_rate); !valid) return valid;
  for (GroupRates& group : groups_) group.learning_rate = learning_rate;
  return {};
}

Result<void> LearningRates::set(std::size_t group, double learning_rate) {
  if (auto valid = check_rate(learning_rate); !valid) return valid;
  if (group >= groups_.size())
    return fail(ErrorCode::usage,
                fmt::format("there is no parameter group {}; the engine has {}, counted from 0",
                            group, groups_.size()));
  groups_[group].learning_rate = learning_rate;
  return {};
}

void LearningRates::step() {
  if (schedule_) schedule_->advance(++state_.last_batch_iteration, groups_);
}

void LearningRates::save(TrainingState& state) const {
  for (std::size_t i = 0; i < std::min(state.groups.size(), groups_.size()); ++i) {
    auto& saved = state.groups[i].hyper_parameters;
    saved[kRate] = groups_[i].learning_rate;
    if (!groups_[i].betas) continue;
    saved[kBeta1] = groups_[i].betas->beta1;
    saved[kBeta2] = groups_[i].betas->beta2;
  }
  if (schedule_) state.scheduler = state_;
}

Result<void> LearningRates::check(const TrainingState& saved, const std::string& path) const {
  if (!schedule_) return {};
  constexpr const char* kRemedy =
      "load it with the /scheduler that it was saved with, or set restores_scheduler to false";
  if (!saved.scheduler)
    return fail(ErrorCode::usage,
                fmt::format("{}: has no scheduler state, and this engine has /scheduler {}; {}",
                            path, state_.type, kRemedy));
  if (saved.scheduler->type == state_.type) return {};
  return fail(ErrorCode::usage,
              fmt::format("{}: has the state of scheduler '{}', and this engine has /scheduler {}; "
                          "{}",
                          path, saved.scheduler->type, state_.type, kRemedy));
}

void LearningRates::restore(const TrainingState& saved, bool has_schedule) {
  for (std::size_t i = 0; i < std::min(saved.groups.size(), groups_.size()); ++i) {
    const ParameterGroup& group = saved.groups[i];
    GroupRates& own = groups_[i];
    own.learning_rate = saved_or(group, kRate, own.learning_rate);
    if (own.betas)
      own.betas = AdamBetas{saved_or(group, kBeta1, own.betas->beta1),
                            saved_or(group, kBeta2, own.betas->beta2)};
  }
  if (has_schedule && schedule_ && saved.scheduler) state_ = *saved.scheduler;
}

}  // namespace zeroproof

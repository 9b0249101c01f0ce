#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace zeroproof {

// One number for all parameter groups, or a list with a number for each.
using GroupValues = std::variant<double, std::vector<double>>;

enum class WarmupType : std::uint8_t { log, linear };

// The options of DeepSpeed's schedulers, under their names and with their defaults.

// The learning rate grows from a least value without an end.
struct LrRangeTestOptions {
  GroupValues lr_range_test_min_lr = 1e-3;
  std::int64_t lr_range_test_step_size = 2000;
  double lr_range_test_step_rate = 1.0;
  bool lr_range_test_staircase = false;
};

// The learning rate rises, falls, and then decays; Adam's beta1 goes the other way round.
struct OneCycleOptions {
  GroupValues cycle_min_lr = 0.0;
  GroupValues cycle_max_lr = 0.0;
  double decay_lr_rate = 0.0;
  double cycle_first_step_size = 2000.0;
  std::optional<double> cycle_second_step_size = {};  // default: that of the first half
  double cycle_first_stair_count = 0.0;               // 0: no stairs
  std::optional<double> cycle_second_stair_count = {};
  double decay_step_size = 0.0;  // 0: no decay
  bool cycle_momentum = true;
  GroupValues cycle_min_mom = 0.8;
  GroupValues cycle_max_mom = 0.9;
  double decay_mom_rate = 0.0;
};

struct Warmup {
  std::int64_t warmup_num_steps = 1000;  // at least 2 are taken
  WarmupType warmup_type = WarmupType::log;
};

// The learning rate rises to a greatest value and stays there.
struct WarmupLrOptions {
  GroupValues warmup_min_lr = 0.0;
  std::optional<GroupValues> warmup_max_lr = {};  // default: what each group has
  Warmup warmup = {};
};

// The same, and then a straight line down to the least value.
struct WarmupDecayLrOptions {
  double total_num_steps = 0.0;
  GroupValues warmup_min_lr = 0.0;
  std::optional<GroupValues> warmup_max_lr = 1e-3;  // null: what each group has
  Warmup warmup = {};
};

// Ratios of the learning rate that each group has: a warmup, then half a cosine.
struct WarmupCosineLrOptions {
  double total_num_steps = 0.0;
  double warmup_min_ratio = 0.0;
  double cos_min_ratio = 1e-4;
  Warmup warmup = {};
};

using ScheduleOptions = std::variant<LrRangeTestOptions, OneCycleOptions, WarmupLrOptions,
                                     WarmupDecayLrOptions, WarmupCosineLrOptions>;

// The section /scheduler of ds_config.json. Plain data.
struct SchedulerConfig {
  ScheduleOptions options = {};
  // The iteration that a training goes on from; -1: from the beginning.
  std::int64_t last_batch_iteration = -1;
};

std::string_view scheduler_name(const SchedulerConfig& config);  // "WarmupLR"; static

}  // namespace zeroproof

#include "engine/config/scheduler_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "model/nearest_name.h"

namespace zeroproof {
namespace {

// DeepSpeed's own schedulers, by the arguments of their constructors.
struct Scheduler {
  std::string_view name;
  std::span<const std::string_view> required;
  std::span<const std::string_view> options;
};

constexpr std::string_view kTotal[] = {"total_num_steps"};
constexpr std::string_view kCycleBounds[] = {"cycle_min_lr", "cycle_max_lr"};
constexpr std::string_view kRange[] = {"lr_range_test_min_lr", "lr_range_test_step_size",
                                       "lr_range_test_step_rate", "lr_range_test_staircase",
                                       "last_batch_iteration"};
constexpr std::string_view kCycle[] = {"decay_lr_rate",
                                       "cycle_first_step_size",
                                       "cycle_second_step_size",
                                       "cycle_first_stair_count",
                                       "cycle_second_stair_count",
                                       "decay_step_size",
                                       "cycle_momentum",
                                       "cycle_min_mom",
                                       "cycle_max_mom",
                                       "decay_mom_rate",
                                       "last_batch_iteration"};
constexpr std::string_view kWarmup[] = {"warmup_min_lr", "warmup_max_lr", "warmup_num_steps",
                                        "warmup_type", "last_batch_iteration"};
constexpr std::string_view kCosine[] = {"warmup_min_ratio", "warmup_num_steps", "cos_min_ratio",
                                        "warmup_type", "last_batch_iteration"};

constexpr Scheduler kSchedulers[] = {{"LRRangeTest", {}, kRange},
                                     {"OneCycle", kCycleBounds, kCycle},
                                     {"WarmupLR", {}, kWarmup},
                                     {"WarmupDecayLR", kTotal, kWarmup},
                                     {"WarmupCosineLR", kTotal, kCosine}};

// Of torch.optim.lr_scheduler; their arguments are not looked at.
constexpr std::array<std::string_view, 15> kTorchSchedulers = {"ChainedScheduler",
                                                               "ConstantLR",
                                                               "CosineAnnealingLR",
                                                               "CosineAnnealingWarmRestarts",
                                                               "CyclicLR",
                                                               "ExponentialLR",
                                                               "LambdaLR",
                                                               "LinearLR",
                                                               "MultiStepLR",
                                                               "MultiplicativeLR",
                                                               "OneCycleLR",
                                                               "PolynomialLR",
                                                               "ReduceLROnPlateau",
                                                               "SequentialLR",
                                                               "StepLR"};

bool has(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void check_options(const Scheduler& scheduler, const ConfigSection& block) {
  const ConfigSection params = block.below("params");
  for (const std::string_view name : scheduler.required) {
    if (params.has(name)) continue;
    params.reject(name, fmt::format("is missing; {} needs it", scheduler.name));
  }
  for (const std::string& name : params.names()) {
    if (has(scheduler.required, name) || has(scheduler.options, name)) continue;
    params.reject(name, fmt::format("is no option of {}; {}", scheduler.name,
                                    did_you_mean(name, scheduler.options)));
  }
}

}  // namespace

void check_scheduler(const ConfigSection& document) {
  const ConfigSection block = document.below("scheduler");
  const JsonValue* const type = block.find("type");
  if (type == nullptr || type->kind != JsonKind::text) return;
  std::vector<std::string_view> known(kTorchSchedulers.begin(), kTorchSchedulers.end());
  for (const Scheduler& scheduler : kSchedulers) {
    if (scheduler.name == type->text) return check_options(scheduler, block);
    known.push_back(scheduler.name);
  }
  if (has(kTorchSchedulers, type->text)) return;
  block.reject("type", fmt::format("is {}, which neither DeepSpeed nor PyTorch has; {}",
                                   type->described(), did_you_mean(type->text, known)));
}

}  // namespace zeroproof

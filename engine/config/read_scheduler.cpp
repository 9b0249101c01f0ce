#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "engine/config/config_reader.h"
#include "model/nearest_name.h"

namespace zeroproof {
namespace {

// One of DeepSpeed's own schedulers, by the arguments of its constructor.
struct Scheduler {
  std::string_view name;
  std::span<const std::string_view> required;
  std::span<const std::string_view> options;
  ScheduleOptions (*read)(const ConfigSection& params);
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

constexpr NumberRange kAnyNumber{.least = -NumberRange{}.greatest};
constexpr IntegerRange kAnyInteger{.least = INT64_MIN};

void read_or_null(const ConfigSection& params, std::string_view name,
                  std::optional<double>& value) {
  params.note_auto(name, "its default");
  const JsonValue* const found = params.find(name);
  if (found == nullptr || found->kind == JsonKind::null) return;
  double given = 0.0;
  params.read(name, given, kAnyNumber);
  value = given;
}

void read_values(const ConfigSection& params, std::string_view name, GroupValues& values) {
  const JsonValue* const found = params.find(name);
  if (found == nullptr || found->kind != JsonKind::list) {
    double given = std::get<double>(values);
    params.read(name, given, kAnyNumber);
    values = given;
    return;
  }
  std::vector<double> list;
  for (const JsonValue& item : found->values) {
    if (item.kind != JsonKind::number)
      throw RejectedValue{fmt::format("{}/{}", params.pointer(name), list.size()),
                          fmt::format("is {}; give a number", item.described())};
    list.push_back(item.number);
  }
  values = std::move(list);
}

// Null: what the groups have.
void read_greatest(const ConfigSection& params, std::optional<GroupValues>& greatest) {
  constexpr std::string_view kName = "warmup_max_lr";
  const JsonValue* const found = params.find(kName);
  if (found == nullptr)
    return params.note_auto(
        kName, greatest ? fmt::format("{}", std::get<double>(*greatest)) : "the optimizer's");
  if (found->kind == JsonKind::null) {
    greatest = std::nullopt;
    return;
  }
  GroupValues given = 0.0;
  read_values(params, kName, given);
  greatest = std::move(given);
}

// DeepSpeed warns of another name and takes the logarithm.
void read_warmup(const ConfigSection& params, Warmup& warmup) {
  constexpr std::string_view kName = "warmup_type";
  params.read("warmup_num_steps", warmup.warmup_num_steps, kAnyInteger);
  const std::string type = params.text(kName).value_or("log");
  if (type == "linear") warmup.warmup_type = WarmupType::linear;
  if (type != "linear" && type != "log")
    params.note(ConfigNoteKind::converted, kName,
                fmt::format("{} taken as \"log\"", params.find(kName)->described()));
}

void read_total(const ConfigSection& params, double& total, const Warmup& warmup) {
  constexpr std::string_view kName = "total_num_steps";
  if (params.is_auto(kName))
    params.reject(kName, "is \"auto\", which has no default; give the number of steps of the job");
  params.read(kName, total, kAnyNumber);
  const auto steps = static_cast<double>(std::max<std::int64_t>(2, warmup.warmup_num_steps));
  if (total < steps)
    params.note(
        ConfigNoteKind::without_effect, kName,
        fmt::format("is {}, and warmup_num_steps {}: the decay has no steps", total, steps));
}

ScheduleOptions read_range_test(const ConfigSection& params) {
  LrRangeTestOptions options;
  read_values(params, "lr_range_test_min_lr", options.lr_range_test_min_lr);
  params.read("lr_range_test_step_size", options.lr_range_test_step_size, kAnyInteger);
  params.read("lr_range_test_step_rate", options.lr_range_test_step_rate, kAnyNumber);
  params.read("lr_range_test_staircase", options.lr_range_test_staircase);
  return options;
}

ScheduleOptions read_one_cycle(const ConfigSection& params) {
  OneCycleOptions options;
  read_values(params, "cycle_min_lr", options.cycle_min_lr);
  read_values(params, "cycle_max_lr", options.cycle_max_lr);
  params.read("decay_lr_rate", options.decay_lr_rate, kAnyNumber);
  params.read("cycle_first_step_size", options.cycle_first_step_size, kAnyNumber);
  read_or_null(params, "cycle_second_step_size", options.cycle_second_step_size);
  params.read("cycle_first_stair_count", options.cycle_first_stair_count, kAnyNumber);
  read_or_null(params, "cycle_second_stair_count", options.cycle_second_stair_count);
  params.read("decay_step_size", options.decay_step_size, kAnyNumber);
  params.read("cycle_momentum", options.cycle_momentum);
  read_values(params, "cycle_min_mom", options.cycle_min_mom);
  read_values(params, "cycle_max_mom", options.cycle_max_mom);
  params.read("decay_mom_rate", options.decay_mom_rate, kAnyNumber);
  return options;
}

// WarmupLR and WarmupDecayLR rise alike.
template <class Options>
void read_rise(const ConfigSection& params, Options& options) {
  read_values(params, "warmup_min_lr", options.warmup_min_lr);
  read_greatest(params, options.warmup_max_lr);
  read_warmup(params, options.warmup);
}

ScheduleOptions read_warmup_lr(const ConfigSection& params) {
  WarmupLrOptions options;
  read_rise(params, options);
  return options;
}

ScheduleOptions read_warmup_decay(const ConfigSection& params) {
  WarmupDecayLrOptions options;
  read_rise(params, options);
  read_total(params, options.total_num_steps, options.warmup);
  return options;
}

ScheduleOptions read_warmup_cosine(const ConfigSection& params) {
  WarmupCosineLrOptions options;
  params.read("warmup_min_ratio", options.warmup_min_ratio, kAnyNumber);
  params.read("cos_min_ratio", options.cos_min_ratio, kAnyNumber);
  read_warmup(params, options.warmup);
  read_total(params, options.total_num_steps, options.warmup);
  return options;
}

constexpr Scheduler kSchedulers[] = {{"LRRangeTest", {}, kRange, read_range_test},
                                     {"OneCycle", kCycleBounds, kCycle, read_one_cycle},
                                     {"WarmupLR", {}, kWarmup, read_warmup_lr},
                                     {"WarmupDecayLR", kTotal, kWarmup, read_warmup_decay},
                                     {"WarmupCosineLR", kTotal, kCosine, read_warmup_cosine}};

// The schedulers of torch.optim.lr_scheduler; their arguments are not looked at.
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

void check_names(const Scheduler& scheduler, const ConfigSection& params) {
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

// DeepSpeed hands the object over as keyword arguments.
ConfigSection params_of(const Scheduler& scheduler, const ConfigSection& block) {
  const JsonValue* const params = block.find("params");
  if (params != nullptr && params->kind == JsonKind::object) return block.below("params");
  block.reject("params",
               fmt::format("{}; give an object, {{}} for the defaults of {}",
                           params ? "is " + params->described() : "is missing", scheduler.name));
}

// SGD has no betas that could go round.
void note_momentum(const ConfigSection& params, const OptimizerConfig& optimizer) {
  constexpr std::string_view kName = "cycle_momentum";
  if (optimizer.type == OptimizerType::sgd && params.has(kName))
    params.note(ConfigNoteKind::without_effect, kName, "cycles Adam's betas, and this is SGD");
}

SchedulerConfig read_options(const Scheduler& scheduler, const ConfigSection& params,
                             const OptimizerConfig& optimizer) {
  check_names(scheduler, params);
  SchedulerConfig config{.options = scheduler.read(params)};
  params.read("last_batch_iteration", config.last_batch_iteration, kAnyInteger);
  note_momentum(params, optimizer);
  return config;
}

}  // namespace

void read_scheduler(const ConfigSection& document, ZeroConfig& config) {
  const JsonValue* const given = document.find("scheduler");
  if (document.is_auto("scheduler")) document.reject("scheduler", "is \"auto\"; give an object");
  if (given == nullptr) return;
  if (given->kind != JsonKind::object)
    document.reject("scheduler", fmt::format("is {}; give an object", given->described()));
  const ConfigSection block = document.below("scheduler");
  if (block.is_auto("type")) block.reject("type", "is \"auto\"; give a scheduler's name");
  const std::optional<std::string> type = block.text("type");
  if (!type) return;
  std::vector<std::string_view> known(kTorchSchedulers.begin(), kTorchSchedulers.end());
  for (const Scheduler& scheduler : kSchedulers) {
    known.push_back(scheduler.name);
    if (scheduler.name != *type) continue;
    config.scheduler = read_options(scheduler, params_of(scheduler, block), config.optimizer);
    return;
  }
  if (!has(kTorchSchedulers, *type))
    block.reject("type", fmt::format("is {}, which neither DeepSpeed nor PyTorch has; {}",
                                     block.find("type")->described(), did_you_mean(*type, known)));
  document.note(ConfigNoteKind::without_effect, "scheduler",
                fmt::format("is PyTorch's {}; the learning rate stays at the optimizer's", *type));
}

}  // namespace zeroproof

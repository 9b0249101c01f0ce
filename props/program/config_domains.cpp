#include "props/program/config_domains.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace zeroproof::program {
namespace {

constexpr std::int64_t kMany = 1000;
constexpr std::uint32_t kAll = 0xF;
constexpr std::uint32_t kFlat = 0x6;  // stages 1 and 2
constexpr std::uint32_t kZero = 0xE;
constexpr std::uint32_t kThird = 0x8;

constexpr const char* kTriedFlags[] = {"true", "false", "\"auto\"", "7"};
constexpr const char* kTriedSizes[] = {"0", "1", "12", "7", "-1", "1.5", "\"many\"", "5e8"};
constexpr const char* kTriedStages[] = {"0", "1", "2", "3", "4", "-1", "\"3\""};
constexpr const char* kTriedSteps[] = {"1", "2", "0", "-2", "null"};
constexpr const char* kTriedFactors[] = {"1.0", "2.0", "0.0", "-1.0", "\"x\""};
constexpr const char* kTriedDtypes[] = {"\"fp32\"", "\"bf16\"", "\"fp16\"",
                                        "\"fp64\"", "null",     "3"};
constexpr const char* kTriedOps[] = {"\"mean\"", "\"sum\"", "\"max\"", "1"};
constexpr const char* kTriedDevices[] = {"\"cpu\"", "\"none\"", "\"nvme\"", "\"gpu\""};
constexpr const char* kTriedOptimizers[] = {"\"Adam\"", "\"AdamW\"", "\"SGD\"", "\"Lamb\"", "5"};
constexpr const char* kTriedModules[] = {R"(["torch.nn.Linear"])", "[]", R"(["no.such.Class"])",
                                         "1"};
constexpr const char* kTriedScales[] = {"0", "16", "-1", "1e400", "\"dynamic\""};
constexpr const char* kTriedPowers[] = {"3", "16", "2000", "-3", "1.5"};
constexpr const char* kTriedCounts[] = {"1", "2", "0", "-1", "null"};

template <class Value, std::size_t N>
Value at(const std::array<Value, N>& values, int index) {
  return values.at(static_cast<std::size_t>(index));
}

constexpr std::array<std::int64_t, 9> kBuckets = {500'000'000, 1, 2, 3, 5, 8, 13, 21, 40};
constexpr std::array<std::int64_t, 6> kGathers = {500'000'000, 2, 4, 10, 40, 7};
constexpr std::array<std::int64_t, 7> kSubGroups = {1'000'000'000, 1, 2, 3, 5, 8, 13};
constexpr std::array<std::int64_t, 8> kPrefetches = {0, 1, 2, 4, 8, 16, 40, kMany};
constexpr std::array<std::int64_t, 8> kPersistences = {0, 1, 2, 3, 4, 6, 12, 64};
constexpr std::array<std::int64_t, 6> kPersistAll = {INT64_MAX, 0, 3, 6, 12, 24};
constexpr std::array<std::int64_t, 7> kLives = {1'000'000'000, 0, 2, 4, 8, 16, 32};
constexpr std::array<std::int64_t, 7> kReuses = {0, 1, 3, 6, 12, 24, kMany};

void set_scheduler(ZeroConfig& config, int value) {
  if (value == 0) return;
  WarmupLrOptions options;
  options.warmup.warmup_num_steps = 2;
  options.warmup.warmup_type = value == 1 ? WarmupType::linear : WarmupType::log;
  options.warmup_max_lr = 0.125;
  config.scheduler = SchedulerConfig{options};
}

// No two numbers are alike, so that none can stand in for another.
void set_update_rule(ZeroConfig& config, int value) {
  OptimizerConfig& optimizer = config.optimizer;
  optimizer.adam.lr = 1e-2;
  optimizer.sgd.lr = 2e-2;
  optimizer.adam.weight_decay = 0.1;
  optimizer.adam.is_decay_decoupled = value == 1 || optimizer.type == OptimizerType::adamw;
  if (value == 2) {
    optimizer.adam.beta1 = 0.75;
    optimizer.adam.beta2 = 0.875;
    optimizer.adam.eps = 1e-3;
  }
  optimizer.sgd.momentum = 0.5;
  optimizer.sgd.weight_decay = value == 1 ? 0.0 : 0.05;
  optimizer.sgd.is_nesterov = value == 2;
  optimizer.adam.is_maximizing = optimizer.sgd.is_maximizing = value == 3;
  optimizer.sgd.dampening = value == 3 ? 0.25 : 0.0;
}

void set_masters(ZeroConfig& config, int value) {
  if (!config.bf16.enabled) return;
  config.bf16.master_weights_and_grads = true;
  config.bf16.optimizer_states = value == 2;
  if (value == 1) config.offload_optimizer = OffloadDevice::cpu;
  config.optimizer.type = OptimizerType::adam;
  config.optimizer.adam.lr = 1e-2;  // less would be rounded away
  config.grad_accum_dtype.reset();
}

void set_loss_scale(ZeroConfig& config, int value) {
  constexpr std::array<double, 4> kNumbers = {16.0, 0.0, 1.0, 2.0};
  config.fp16.loss_scale = at(kNumbers, value);
}

void set_least_scale(ZeroConfig& config, int value) {
  constexpr std::array<double, 4> kNumbers = {1.0, 8.0, 6.0, 4.0};
  config.fp16.loss_scale = 0.0;
  config.fp16.min_loss_scale = at(kNumbers, value);
}

void set_safe_modules(ZeroConfig& config, int value) {
  auto& modules = config.torch_autocast.lower_precision_safe_modules;
  constexpr std::array<const char*, 2> kNames = {"torch.nn.LayerNorm", "torch.nn.Sequential"};
  modules.emplace();
  if (value < 3) modules->push_back(at(kNames, value - 1));
}

void set_wire(ZeroConfig& config, int value) {
  constexpr std::array<DType, 4> kTypes = {DType::float32, DType::float32, DType::bfloat16,
                                           DType::float16};
  config.communication_data_type = at(kTypes, value);
}

constexpr ConfigDomain kDomains[] = {
    {"/zero_optimization/stage", 4, [](ZeroConfig& c, int v) { c.stage = v; }, 0, 0, kTriedStages},
    {"/zero_optimization/reduce_bucket_size", 9,
     [](ZeroConfig& c, int v) { c.reduce_bucket_size = at(kBuckets, v); }, kZero, 12, kTriedSizes},
    {"/zero_optimization/allgather_bucket_size", 6,
     [](ZeroConfig& c, int v) { c.allgather_bucket_size = at(kGathers, v); }, kFlat, 2,
     kTriedSizes},
    {"/zero_optimization/contiguous_gradients", 2,
     [](ZeroConfig& c, int v) { c.contiguous_gradients = v == 0; }, kFlat, 3, kTriedFlags},
    {"/zero_optimization/reduce_scatter", 2,
     [](ZeroConfig& c, int v) { c.reduce_scatter = v == 0; }, kZero, 3, kTriedFlags},
    {"/zero_optimization/use_multi_rank_bucket_allreduce", 2,
     [](ZeroConfig& c, int v) { c.use_multi_rank_bucket_allreduce = v == 0; }, kFlat, 3,
     kTriedFlags},
    {"/zero_optimization/overlap_comm", 3, [](ZeroConfig& c, int v) { c.overlap_comm = v == 1; },
     kZero, 4, kTriedFlags},
    {"/zero_optimization/ignore_unused_parameters", 3,
     [](ZeroConfig& c, int v) {
       c.ignore_unused_parameters = v == 0;
       if (v != 1 || (c.stage != 1 && c.stage != 2)) return;
       c.offload_optimizer = OffloadDevice::cpu;
       c.zero_force_ds_cpu_optimizer = false;
     },
     kFlat, 2, kTriedFlags},
    {"/zero_optimization/sub_group_size", 7,
     [](ZeroConfig& c, int v) { c.sub_group_size = at(kSubGroups, v); }, kThird, 4, kTriedSizes},
    {"/zero_optimization/offload_optimizer/device", 2,
     [](ZeroConfig& c, int v) {
       c.offload_optimizer = v == 1 ? OffloadDevice::cpu : OffloadDevice::none;
       c.zero_force_ds_cpu_optimizer = v == 0;
     },
     kZero, 4, kTriedDevices},
    {"/zero_optimization/offload_param/device", 2,
     [](ZeroConfig& c, int v) {
       c.offload_param = v == 1 ? OffloadDevice::cpu : OffloadDevice::none;
     },
     kThird, 3, kTriedDevices},
    {"/zero_optimization/memory_efficient_linear", 2,
     [](ZeroConfig& c, int v) { c.memory_efficient_linear = v == 0; }, kThird, 4, kTriedFlags},
    {"/zero_optimization/enable_sanity_checks", 2,
     [](ZeroConfig& c, int v) { c.enable_sanity_checks = v == 1; }, kThird, 3, kTriedFlags},
    {"/zero_optimization/stage3_prefetch_bucket_size", 8,
     [](ZeroConfig& c, int v) { c.stage3_prefetch_bucket_size = at(kPrefetches, v); }, kThird, 5,
     kTriedSizes},
    {"/zero_optimization/stage3_param_persistence_threshold", 8,
     [](ZeroConfig& c, int v) { c.stage3_param_persistence_threshold = at(kPersistences, v); },
     kThird, 5, kTriedSizes},
    {"/zero_optimization/stage3_model_persistence_threshold", 6,
     [](ZeroConfig& c, int v) { c.stage3_model_persistence_threshold = at(kPersistAll, v); },
     kThird, 2, kTriedSizes},
    {"/zero_optimization/stage3_max_live_parameters", 7,
     [](ZeroConfig& c, int v) { c.stage3_max_live_parameters = at(kLives, v); }, kThird, 4,
     kTriedSizes},
    {"/zero_optimization/stage3_max_reuse_distance", 7,
     [](ZeroConfig& c, int v) { c.stage3_max_reuse_distance = at(kReuses, v); }, kThird, 4,
     kTriedSizes},
    {"/zero_optimization/stage3_module_granularity_threshold", 3,
     [](ZeroConfig& c, int v) {
       c.stage3_module_granularity_threshold = v == 0 ? 0 : v == 1 ? kMany : 4;
     },
     kThird, 2, kTriedSizes},
    {"/train_micro_batch_size_per_gpu", 2,
     [](ZeroConfig& c, int v) { c.train_micro_batch_size_per_gpu = v == 0 ? 1 : 5; }, kAll, 4,
     kTriedSteps},
    {"/gradient_accumulation_steps", 4,
     [](ZeroConfig& c, int v) {
       constexpr std::array<std::int64_t, 4> kNumbers = {1, 2, 4, 3};
       c.gradient_accumulation_steps = at(kNumbers, v);
     },
     0, 0, kTriedSteps},
    {"/managed_gradient_accumulation", 2,
     [](ZeroConfig& c, int v) { c.managed_gradient_accumulation = v == 0; }, kAll, 3, kTriedFlags},
    {"/gradient_clipping", 3,
     [](ZeroConfig& c, int v) {
       constexpr std::array<double, 3> kNumbers = {0.0, 0.75, 1e6};
       c.gradient_clipping = at(kNumbers, v);
     },
     kAll, 4, kTriedFactors},
    {"/prescale_gradients", 2, [](ZeroConfig& c, int v) { c.prescale_gradients = v == 1; }, kAll,
     2, kTriedFlags},
    {"/gradient_predivide_factor", 2,
     [](ZeroConfig& c, int v) { c.gradient_predivide_factor = v == 1 ? 2.0 : 1.0; }, kAll, 2,
     kTriedFactors},
    {"/gradient_allreduce_op", 2,
     [](ZeroConfig& c, int v) {
       c.gradient_allreduce_op = v == 1 ? GradientAllreduceOp::sum : GradientAllreduceOp::mean;
     },
     kAll, 2, kTriedOps},
    {"/communication_data_type", 4, set_wire, kAll, 3, kTriedDtypes},
    {"/data_types/grad_accum_dtype", 2,
     [](ZeroConfig& c, int v) {
       if (v == 1 && !c.bf16.master_weights_and_grads) c.grad_accum_dtype = DType::float32;
     },
     kAll, 6, kTriedDtypes},
    {"/fp16/enabled", 1, [](ZeroConfig&, int) {}, 0, 0, kTriedFlags},
    {"/fp16/loss_scale", 4, set_loss_scale, kAll, 3, kTriedScales},
    {"/fp16/initial_scale_power", 1, [](ZeroConfig&, int) {}, 0, 0, kTriedPowers},
    {"/fp16/loss_scale_window", 3,
     [](ZeroConfig& c, int v) { c.fp16.loss_scale_window = v == 0 ? kMany : v; }, kAll, 2,
     kTriedCounts},
    {"/fp16/hysteresis", 3,
     [](ZeroConfig& c, int v) { c.fp16.hysteresis = v == 0 ? 2 : 2 * v - 1; }, kAll, 2,
     kTriedCounts},
    {"/fp16/consecutive_hysteresis", 2,
     [](ZeroConfig& c, int v) { c.fp16.consecutive_hysteresis = v == 1; }, kAll, 1, kTriedFlags},
    {"/fp16/min_loss_scale", 4, set_least_scale, kAll, 2, kTriedFactors},
    {"/bf16/enabled", 1, [](ZeroConfig&, int) {}, 0, 0, kTriedFlags},
    {"/bf16/check_grad_overflow", 2,
     [](ZeroConfig& c, int v) { c.bf16.check_grad_overflow = v == 0; }, kAll, 2, kTriedFlags},
    {"/bf16/bf16_master_weights_and_grads", 3, set_masters, kZero, 2, kTriedFlags},
    {"/torch_autocast/enabled", 1, [](ZeroConfig&, int) {}, 0, 0, kTriedFlags},
    {"/torch_autocast/lower_precision_safe_modules", 4, set_safe_modules, kAll, 2, kTriedModules},
    {"/optimizer/type", 3,
     [](ZeroConfig& c, int v) {
       constexpr std::array<OptimizerType, 3> kTypes = {OptimizerType::adam, OptimizerType::adamw,
                                                        OptimizerType::sgd};
       c.optimizer.type = at(kTypes, v);
       if (v == 1) c.optimizer.adam.is_decay_decoupled = true;
     },
     kAll, 4, kTriedOptimizers},
    {"/optimizer/params/weight_decay", 4, set_update_rule, kAll, 4, kTriedFactors},
    {"/scheduler/params/warmup_num_steps", 3, set_scheduler, kAll, 1, kTriedCounts}};

bool has_stage(const ConfigDomain& domain, int stage) {
  return (domain.stages >> static_cast<unsigned>(stage) & 1U) != 0;
}

// Members that decide one thing together, by the ends of their keys.
struct Topic {
  std::uint32_t stages;
  std::vector<std::string_view> keys;
};

// How gradients travel; in which dtypes they wait; how an update goes by parts; how the loss scale
// moves; how long parameters of stage 3 are whole.
const std::array<Topic, 5>& topics() {
  static const std::array<Topic, 5> kTopics = {
      {{kAll,
        {"reduce_bucket_size", "reduce_scatter", "use_multi_rank_bucket_allreduce",
         "prescale_gradients", "gradient_predivide_factor", "gradient_allreduce_op",
         "communication_data_type"}},
       {kAll,
        {"gradient_accumulation_steps", "grad_accum_dtype", "bf16_master_weights_and_grads",
         "communication_data_type", "lower_precision_safe_modules", "check_grad_overflow"}},
       {kZero,
        {"allgather_bucket_size", "overlap_comm", "sub_group_size", "offload_optimizer/device",
         "contiguous_gradients", "ignore_unused_parameters", "gradient_clipping", "optimizer/type",
         "params/weight_decay"}},
       {kAll,
        {"fp16/loss_scale", "loss_scale_window", "fp16/hysteresis", "consecutive_hysteresis",
         "min_loss_scale"}},
       {kThird,
        {"prefetch_bucket_size", "param_persistence_threshold", "model_persistence_threshold",
         "max_live_parameters", "max_reuse_distance"}}}};
  return kTopics;
}

bool is_of(const Topic& topic, std::string_view key) {
  return std::ranges::any_of(topic.keys, [&](std::string_view end) { return key.ends_with(end); });
}

// Weight 0 is of an end before all changes are made; the others are of the members.
void change_members(Source& source, const Policy& policy, const std::vector<std::uint32_t>& weights,
                    int changes, ZeroConfig& config) {
  for (int i = 0; i < changes; ++i) {
    const Source::Scope scope(source, "config");
    const std::size_t row = source.weighted(weights);
    if (row == 0) return;
    const ConfigDomain& domain = kDomains[row - 1];
    ZeroConfig changed = config;
    const int value =
        1 + static_cast<int>(source.below(static_cast<std::uint32_t>(domain.values - 1)));
    domain.set(changed, value);
    if (validate(changed) && policy.can_do(changed)) config = changed;
  }
}

}  // namespace

std::span<const ConfigDomain> config_domains() {
  return kDomains;
}

ZeroConfig simplest_config(int stage) {
  ZeroConfig config;
  config.stage = stage;
  config.gradient_clipping = 0.0;
  if (stage != 3) return config;
  config.stage3_prefetch_bucket_size = 0;
  config.stage3_param_persistence_threshold = 0;
  config.stage3_max_reuse_distance = 0;
  return config;
}

// A fixed loss scale, or one that begins where exact data have room.
void set_precision(ZeroConfig& config, Precision precision) {
  config.fp16.enabled = precision == Precision::fp16;
  if (config.fp16.enabled) {
    config.fp16.loss_scale = 16.0;
    config.fp16.initial_scale_power = 3;
    config.fp16.hysteresis = 1;
  }
  config.bf16.enabled = precision == Precision::bf16;
  config.torch_autocast.enabled =
      precision == Precision::autocast || precision == Precision::grad_scaler;
  config.torch_autocast.dtype =
      precision == Precision::grad_scaler ? DType::float16 : DType::bfloat16;
}

// A member of another stage has no effect, and is seldom drawn.
void draw_config(Source& source, const Policy& policy, int changes, ZeroConfig& config) {
  constexpr std::uint32_t kSeldom = 8;
  std::vector<std::uint32_t> weights = {4 * kSeldom};  // no more changes
  for (const ConfigDomain& domain : kDomains) {
    const bool is_drawn = domain.values > 1 && domain.weight > 0;
    weights.push_back(!is_drawn                         ? 0
                      : has_stage(domain, config.stage) ? kSeldom * domain.weight
                                                        : 1);
  }
  change_members(source, policy, weights, changes, config);
}

void draw_topic(Source& source, const Policy& policy, ZeroConfig& config) {
  const auto stage = static_cast<unsigned>(config.stage);
  std::vector<std::uint32_t> each = {1};  // none
  for (const Topic& topic : topics()) each.push_back((topic.stages >> stage & 1U) != 0);
  each.back() *= 3;
  const std::size_t chosen = source.weighted(each);
  if (chosen == 0) return;
  std::vector<std::uint32_t> weights = {0};
  for (const ConfigDomain& domain : kDomains)
    weights.push_back(is_of(topics().at(chosen - 1), domain.key) && domain.values > 1);
  change_members(source, policy, weights, source.between(1, 4), config);
}

}  // namespace zeroproof::program

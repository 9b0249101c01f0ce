#include "props/train/case_config.h"

#include <algorithm>
#include <string>

#include "props/train/case_ends.h"
#include "props/train/case_storage.h"

namespace zeroproof::train {
namespace {

// What the update does besides; the gradients stay exact. No two numbers are alike, so that none
// can stand in for another.
void set_rule(int rule, OptimizerConfig& optimizer) {
  optimizer.adam.lr = 1e-2;
  optimizer.sgd.lr = 2e-2;
  if (rule == 0) return;
  optimizer.adam.weight_decay = 0.1;
  if (rule == 2) {
    optimizer.adam.beta1 = 0.75;
    optimizer.adam.beta2 = 0.875;
    optimizer.adam.eps = 1e-3;
  }
  optimizer.adam.is_decay_decoupled = rule == 1;
  optimizer.sgd.momentum = 0.5;
  optimizer.sgd.weight_decay = rule == 1 ? 0.0 : 0.05;
  optimizer.sgd.is_nesterov = rule == 2;
  optimizer.adam.is_maximizing = optimizer.sgd.is_maximizing = rule == 3;
  optimizer.sgd.dampening = rule == 3 ? 0.25 : 0.0;
}

// 1: grows every second step; 2: the first overflow is forgiven; 3: so is every first one behind a
// good step; 4: the first two are.
void set_scaling(int scaling, Fp16Config& fp16) {
  fp16.initial_scale_power = 3;
  fp16.loss_scale_window = scaling == 1 ? 2 : 1;
  fp16.hysteresis = scaling < 2 ? 1 : scaling < 4 ? 2 : 3;
  fp16.consecutive_hysteresis = scaling == 3;
}

void name_leaf_module(const CaseSpec& spec, ZeroConfig& config) {
  const std::string name(CaseSpec::kExperts);
  switch (static_cast<LeafBy>(spec.leaf_by)) {
    case LeafBy::call:
      // Which says nothing where no modules fetch.
      if (spec.stage < 3 && spec.first_stage < 3) config.leaf_module.classes = {"zeroproof.Nobody"};
      return;
    case LeafBy::name:
      config.leaf_module.names = {name};
      return;
    case LeafBy::suffix:
      config.leaf_module.name_suffixes = {name.substr(2)};
      return;
    case LeafBy::class_name:
      config.leaf_module.classes = {"zeroproof.Experts"};
  }
}

}  // namespace

ZeroConfig config_of(const CaseSpec& spec) {
  const auto precision = static_cast<Precision>(spec.precision);
  ZeroConfig config;
  config.stage = spec.stage;
  const int own_steps[] = {spec.accumulation, 1, 2 * spec.accumulation, 2};
  config.gradient_accumulation_steps = own_steps[std::clamp(spec.sets_boundary, 0, 3)];
  config.managed_gradient_accumulation = spec.is_unmanaged == 0;
  config.reduce_bucket_size = spec.bucket;
  config.contiguous_gradients = spec.is_scattered == 0;
  config.reduce_scatter = spec.reduces_whole == 0;
  config.use_multi_rank_bucket_allreduce = spec.reduces_to_owners == 0;
  config.overlap_comm = spec.has_overlap != 0;
  config.allgather_bucket_size = spec.gather_bucket;
  config.sub_group_size = spec.sub_group;
  config.stage3_param_persistence_threshold = spec.persistence;
  config.stage3_prefetch_bucket_size = spec.prefetch;
  config.stage3_max_reuse_distance = spec.reuse;
  config.stage3_max_live_parameters = spec.live;
  config.stage3_model_persistence_threshold = spec.persistence_all;
  config.stage3_module_granularity_threshold = spec.granularity;
  config.enable_sanity_checks = spec.checks != 0;
  name_leaf_module(spec, config);
  config.memory_efficient_linear = spec.plain_linear == 0;
  config.zero_force_ds_cpu_optimizer = false;
  config.ignore_unused_parameters = spec.needs_all + spec.is_strict == 0;
  if (spec.is_offloaded != 0) config.offload_optimizer = OffloadDevice::cpu;
  constexpr double kClips[] = {0.0, 0.75, 1e6};
  config.gradient_clipping = kClips[std::clamp(spec.clip, 0, 2)];
  const double fixed_scale = spec.scales_by_one != 0 ? 1.0 : 16.0;
  config.fp16.loss_scale = spec.is_dynamic != 0 ? 0.0 : fixed_scale;
  set_scaling(spec.scaling, config.fp16);
  set_floor(spec, config.fp16);
  config.bf16.check_grad_overflow = spec.is_unchecked == 0;
  if (spec.is_wire_float32 != 0) config.communication_data_type = DType::float32;
  if (spec.accumulates_float32 != 0) config.grad_accum_dtype = DType::float32;
  config.gradient_predivide_factor = spec.predivides != 0 ? 2.0 : 1.0;
  config.prescale_gradients = spec.prescales != 0;
  const bool has_three = spec.ranks == 3 || spec.first_ranks == 3;
  const bool is_sum = spec.is_sum != 0 || (has_three && spec.stage < 3);
  if (is_sum) config.gradient_allreduce_op = GradientAllreduceOp::sum;
  if (spec.is_sgd != 0) config.optimizer.type = OptimizerType::sgd;
  set_rule(spec.rule, config.optimizer);
  config.train_micro_batch_size_per_gpu = 5;
  config.fp16.enabled = precision == Precision::fp16;
  config.bf16.enabled = precision == Precision::bf16;
  set_storage(spec, config);
  config.torch_autocast.enabled = precision == Precision::autocast;
  if (spec.is_unsafe == 1)
    config.torch_autocast.lower_precision_safe_modules = {"torch.nn.LayerNorm"};
  if (spec.is_unsafe == 3)
    config.torch_autocast.lower_precision_safe_modules = {"torch.nn.Sequential"};
  if (spec.is_unsafe == 2) config.torch_autocast.lower_precision_safe_modules.emplace();
  return config;
}

TrainCell cell_of(const CaseSpec& spec) {
  TrainCell cell;
  cell.scenario = "generated";
  cell.stage = spec.stage;
  cell.world_size = spec.world_size();
  cell.tensor_degree = spec.tensor;
  cell.sequence_degree = spec.sequence;
  cell.precision = static_cast<Precision>(spec.precision);
  cell.backward = spec.is_manual != 0 ? BackwardKind::tensor : BackwardKind::engine;
  cell.data = DataMode::exact;
  cell.steps = spec.windows();
  if (spec.counts_nothing == 1) cell.api = AutogradApi::none;
  if (spec.counts_nothing == 2) cell.api = AutogradApi::no_callback;
  cell.sim = SimOrder{.preempts = spec.preempts != 0};
  cell.config = config_of(spec);
  return cell;
}

}  // namespace zeroproof::train

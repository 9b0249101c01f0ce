// Which cells of the matrix a scenario has, and what its engines are configured with.
#include "engine/quirk_effect.h"
#include "props/train/programs.h"
#include "props/train/scenario.h"

namespace zeroproof::train {
namespace {

// Of the built-in configuration: so small that the models need several buckets.
constexpr std::int64_t kBucketElements = 60;
constexpr std::int64_t kAllgatherElements = 200;
constexpr std::int64_t kPrefetchElements = 40;
constexpr std::int64_t kLiveElements = 1000;
// Exact gradients, scaled, have to stay within float16.
constexpr double kExactLossScale = 16.0;  // static
constexpr int kRealScalePower = 8;        // dynamic

ZeroConfig built_in_config(const TrainCell& cell) {
  ZeroConfig config;
  config.reduce_bucket_size = kBucketElements;
  config.allgather_bucket_size = kAllgatherElements;
  config.stage3_param_persistence_threshold = 0;
  config.stage3_prefetch_bucket_size = kPrefetchElements;
  config.stage3_max_reuse_distance = 0;
  config.stage3_max_live_parameters = kLiveElements;
  config.train_micro_batch_size_per_gpu = 2;
  config.zero_force_ds_cpu_optimizer = false;
  config.optimizer.adam.lr = 1e-2;
  if (cell.data == DataMode::exact) config.fp16.loss_scale = kExactLossScale;
  config.fp16.initial_scale_power = kRealScalePower;
  // A mean over three ranks rounds; stage 3 has no sum, there the data are multiples of three.
  if (cell.data == DataMode::exact && cell.world_size == 3 && cell.stage < 3)
    config.gradient_allreduce_op = GradientAllreduceOp::sum;
  return config;
}

bool is_manual(const TrainCell& cell) {
  return cell.backward == BackwardKind::tensor;
}

// An engine whose part of the loss is not its own engine.backward: manual for it all the same.
bool has_manual_engine(const TrainScenario& scenario, const TrainCell& cell) {
  return is_manual(cell) || scenario.engines() > 1;
}

bool scales_dynamically(const TrainCell& cell) {
  return cell.precision == Precision::fp16;
}

// Manual backward of an engine that was never asked to scale.
bool forgets_scale(const TrainScenario& scenario, const TrainCell& cell) {
  if (scenario.name == "non_scalar") return is_manual(cell);
  if (scenario.window == two_engines_window) return !is_manual(cell);
  if (scenario.window == shared_loss_window) return true;
  return scenario.name == "chained_engines";
}

}  // namespace

ZeroConfig config_of(const TrainScenario& scenario, const TrainCell& cell, std::size_t engine) {
  ZeroConfig config = cell.config.value_or(built_in_config(cell));
  config.stage = cell.stage;
  config.gradient_accumulation_steps = scenario.accumulation_steps;
  if (engine == 1 && scenario.second_accumulation_steps > 0)
    config.gradient_accumulation_steps = scenario.second_accumulation_steps;
  config.managed_gradient_accumulation = scenario.is_managed;
  if (scenario.is_offloaded) config.offload_optimizer = OffloadDevice::cpu;
  if (scenario.has_overlap) config.overlap_comm = true;
  if (scenario.accumulates_float32) config.grad_accum_dtype = DType::float32;
  config.fp16.enabled = cell.precision == Precision::fp16;
  config.bf16.enabled = cell.precision == Precision::bf16;
  config.torch_autocast.enabled = cell.precision == Precision::autocast;
  return config;
}

std::vector<std::string> quirk_notes(const TrainScenario& scenario, const TrainCell& cell) {
  if (cell.quirks.is_upstream()) return {};
  const ZeroConfig config = config_of(scenario, cell);
  return notes_on(cell.quirks, {.config = config, .policy = cell.policy});
}

bool is_applicable(const TrainScenario& scenario, const TrainCell& cell) {
  return is_manual(cell) ? scenario.has_tensor_backward : scenario.has_engine_backward;
}

bool is_configuration_refused(const TrainScenario& scenario, const TrainCell& cell) {
  return scenario.is_offloaded && cell.stage == 0;
}

bool reduces_in_step(const ZeroConfig& config) {
  return !config.managed_gradient_accumulation && config.stage < 2;
}

std::optional<EngineErrorId> expected_refusal(const TrainScenario& scenario,
                                              const TrainCell& cell) {
  if (scenario.name == "coalesced" && cell.stage == 0) return EngineErrorId::coalesce_not_allowed;
  if (scenario.name == "non_scalar" && !is_manual(cell))
    return EngineErrorId::backward_of_invalid_loss;
  const bool has_apis = cell.api == AutogradApi::full ||
                        (cell.api == AutogradApi::no_callback && cell.policy != "exact");
  if (has_manual_engine(scenario, cell) && (cell.stage == 0 || !has_apis))
    return EngineErrorId::manual_backward_unsupported;
  if (scales_dynamically(cell) && forgets_scale(scenario, cell))
    return EngineErrorId::backward_without_loss_scaling;
  if (scenario.name == "leaf_without_grad" && cell.stage == 3)
    return EngineErrorId::gradient_of_wrong_size;
  return std::nullopt;
}

}  // namespace zeroproof::train

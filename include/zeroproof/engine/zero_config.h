#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeroproof/engine/schedule/scheduler_config.h"
#include "zeroproof/model/dtype.h"
#include "zeroproof/model/optim/options.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

enum class OffloadDevice : std::uint8_t { none, cpu };
enum class GradientAllreduceOp : std::uint8_t { mean, sum };

struct Fp16Config {
  bool enabled = false;
  double loss_scale = 0.0;  // 0: dynamic
  int initial_scale_power = 16;
  std::int64_t loss_scale_window = 1000;
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;
  double min_loss_scale = 1.0;
  bool master_weights_and_grads = false;  // fp16_master_weights_and_grads
};

struct Bf16Config {
  bool enabled = false;
  bool check_grad_overflow = true;
  bool master_weights_and_grads = false;  // bf16_master_weights_and_grads
  bool optimizer_states = false;          // bf16_optimizer_states
};

struct TorchAutocastConfig {
  bool enabled = false;
  DType dtype = DType::bfloat16;
  // Class names; missing: the default list (docs/spec/zero.md 6.1).
  std::optional<std::vector<std::string>> lower_precision_safe_modules = {};
};

struct LeafModuleConfig {
  std::vector<std::string> classes = {};
  std::vector<std::string> names = {};
  std::vector<std::string> name_suffixes = {};
};

enum class OptimizerType : std::uint8_t { adam, adamw, sgd };

struct OptimizerConfig {
  OptimizerType type = OptimizerType::adam;
  // torch_adam: not the CPU Adam that offload wants (offload_of_unsupported_optimizer).
  bool is_torch_class = false;
  optim::AdamOptions adam = {};  // adam and adamw
  optim::SgdOptions sgd = {};
};

// What ds_config.json says, under its own names; the defaults are docs/spec/zero.md 2.0. Sizes are
// in elements. Plain data.
struct ZeroConfig {
  int stage = 0;
  std::int64_t reduce_bucket_size = 500'000'000;
  std::int64_t allgather_bucket_size = 500'000'000;
  bool contiguous_gradients = true;
  bool reduce_scatter = true;
  bool use_multi_rank_bucket_allreduce = true;
  std::optional<bool> overlap_comm = {};  // default: on for stage 3 alone
  bool ignore_unused_parameters = true;
  std::int64_t sub_group_size = 1'000'000'000;
  OffloadDevice offload_optimizer = OffloadDevice::none;
  OffloadDevice offload_param = OffloadDevice::none;
  bool zero_force_ds_cpu_optimizer = true;
  bool memory_efficient_linear = true;
  bool enable_sanity_checks = false;

  std::int64_t stage3_prefetch_bucket_size = 50'000'000;
  std::int64_t stage3_param_persistence_threshold = 100'000;
  std::int64_t stage3_model_persistence_threshold = INT64_MAX;
  std::int64_t stage3_max_live_parameters = 1'000'000'000;
  std::int64_t stage3_max_reuse_distance = 1'000'000'000;
  std::int64_t stage3_module_granularity_threshold = 0;
  LeafModuleConfig leaf_module = {};

  std::int64_t train_micro_batch_size_per_gpu = 1;
  std::int64_t gradient_accumulation_steps = 1;
  bool managed_gradient_accumulation = true;
  double gradient_clipping = 1.0;  // 0: off
  bool prescale_gradients = false;
  double gradient_predivide_factor = 1.0;
  GradientAllreduceOp gradient_allreduce_op = GradientAllreduceOp::mean;
  std::optional<DType> communication_data_type = {};
  std::optional<DType> grad_accum_dtype = {};  // data_types.grad_accum_dtype; default: the model's
  std::optional<DType> param_dtype = {};       // data_types.param_dtype: must be the model's

  Fp16Config fp16 = {};
  Bf16Config bf16 = {};
  TorchAutocastConfig torch_autocast = {};
  OptimizerConfig optimizer = {};
  std::optional<SchedulerConfig> scheduler = {};  // none: the learning rate stays

  bool has_overlap_comm() const { return overlap_comm.value_or(stage == 3); }
  // Of the parameters in the module: bf16, fp16 or float32.
  DType model_dtype() const;
  DType accumulation_dtype() const { return grad_accum_dtype.value_or(model_dtype()); }
  DType master_dtype() const;  // docs/spec/zero.md 6.2
  // A 16-bit model whose gradients accumulate in float32.
  bool has_float32_partition() const {
    return accumulation_dtype() == DType::float32 && model_dtype() != DType::float32;
  }
  // Of gradients on the wire, where autocast does not say otherwise (docs/spec/zero.md 6.1).
  DType communication_dtype() const { return communication_data_type.value_or(model_dtype()); }
  bool is_offloaded() const { return offload_optimizer == OffloadDevice::cpu; }
};

// What the document says about batches; the rest follows from the number of ranks.
struct BatchSizes {
  std::optional<std::int64_t> train_batch_size;
  std::optional<std::int64_t> train_micro_batch_size_per_gpu;
  std::optional<std::int64_t> gradient_accumulation_steps;
};

struct ParsedConfig {
  ZeroConfig config;  // its batch sizes: as given, else 1
  BatchSizes batch_sizes;
  std::vector<std::string> ignored;  // JSON pointers of known keys that are not modelled
};

// Reads a ds_config.json as it is. `source` is the file's name, for messages. An unknown key, a
// wrong type or value is an error with its JSON pointer and, for a key, the nearest known one.
Result<ParsedConfig> parse_ds_config(const std::string& json, const std::string& source);

// The configuration on `data_parallel_size` ranks: what the document leaves open of micro-batch
// size and accumulation steps follows from train_batch_size. An error unless the three agree.
Result<ZeroConfig> with_batch_sizes(const ParsedConfig& parsed, std::int64_t data_parallel_size);

// What no engine can be made from: combinations of docs/spec/zero.md 2.20 and 6.2, in their words
// (unsupported_combination, odd_allgather_bucket_size, reduce_scatter_dtype_unsupported,
// reduce_scatter_with_prescaling, offload_of_unsupported_optimizer, sum_reduction_unsupported,
// ...). The error's text begins with the id where there is one.
Result<void> validate(const ZeroConfig& config);

}  // namespace zeroproof

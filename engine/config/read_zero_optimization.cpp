#include <fmt/format.h>

#include "engine/config/config_reader.h"

namespace zeroproof {
namespace {

// A key with its "stage3_" name and the short one; only one of them may be given.
void read_stage3(const ConfigSection& zero, std::string_view name, std::int64_t& value) {
  const std::string full = fmt::format("stage3_{}", name);
  if (zero.find(name) != nullptr && zero.find(full) != nullptr) {
    zero.reject(full, fmt::format("is given as {} too; keep one", name));
  }
  zero.read(name, value);
  zero.read(full, value);
}

OffloadDevice read_device(const ConfigSection& block) {
  const std::string device = block.text("device").value_or("none");
  if (device == "none") return OffloadDevice::none;
  if (device == "cpu") return OffloadDevice::cpu;
  if (device == "nvme") block.reject("device", "is \"nvme\", which is not modelled; use \"cpu\"");
  block.reject("device", fmt::format("is \"{}\"; give \"none\" or \"cpu\"", device));
}

// The block, or its older switch; not both, as upstream.
OffloadDevice read_offload(const ConfigSection& zero, std::string_view block,
                           std::string_view older) {
  bool is_on = false;
  zero.read(older, is_on);
  if (zero.find(block) == nullptr) return is_on ? OffloadDevice::cpu : OffloadDevice::none;
  if (zero.find(older) != nullptr) {
    zero.reject(older, fmt::format("is the older name of {}; keep one", block));
  }
  return read_device(zero.below(block));
}

// The older name and a newer one; models are not saved here.
void read_model_save(const ConfigSection& zero) {
  constexpr std::string_view kOlder = "stage3_gather_fp16_weights_on_model_save";
  if (zero.find(kOlder) == nullptr) return;
  for (const std::string_view newer :
       {"stage3_gather_16bit_weights_on_model_save", "gather_16bit_weights_on_model_save"}) {
    if (zero.find(newer) == nullptr) continue;
    zero.reject(kOlder, fmt::format("is the older name of {}; keep one", newer));
  }
}

void read_buckets(const ConfigSection& zero, ZeroConfig& config) {
  zero.read("contiguous_gradients", config.contiguous_gradients);
  zero.read("reduce_scatter", config.reduce_scatter);
  zero.read("reduce_bucket_size", config.reduce_bucket_size, {.least = 1});
  zero.read("use_multi_rank_bucket_allreduce", config.use_multi_rank_bucket_allreduce);
  zero.read("allgather_bucket_size", config.allgather_bucket_size);
  zero.read("overlap_comm", config.overlap_comm);
  zero.read("sub_group_size", config.sub_group_size);
  if (config.sub_group_size > 0) return;
  config.sub_group_size = 1;
  zero.note(ConfigNoteKind::converted, "sub_group_size",
            "0 taken as 1: each parameter is updated alone");
}

void read_switches(const ConfigSection& zero, ZeroConfig& config) {
  zero.read("ignore_unused_parameters", config.ignore_unused_parameters);
  zero.read("memory_efficient_linear", config.memory_efficient_linear);
  zero.read("enable_sanity_checks", config.enable_sanity_checks);
  config.offload_optimizer = read_offload(zero, "offload_optimizer", "cpu_offload");
  config.offload_param = read_offload(zero, "offload_param", "cpu_offload_param");
  read_model_save(zero);
}

void read_parameters(const ConfigSection& zero, ZeroConfig& config) {
  read_stage3(zero, "prefetch_bucket_size", config.stage3_prefetch_bucket_size);
  read_stage3(zero, "param_persistence_threshold", config.stage3_param_persistence_threshold);
  read_stage3(zero, "model_persistence_threshold", config.stage3_model_persistence_threshold);
  read_stage3(zero, "max_live_parameters", config.stage3_max_live_parameters);
  read_stage3(zero, "max_reuse_distance", config.stage3_max_reuse_distance);
  read_stage3(zero, "module_granularity_threshold", config.stage3_module_granularity_threshold);
  const ConfigSection leaf = zero.below("leaf_module");
  leaf.read("classes", config.leaf_module.classes);
  leaf.read("names", config.leaf_module.names);
  leaf.read("name_suffixes", config.leaf_module.name_suffixes);
}

}  // namespace

void read_zero_optimization(const ConfigSection& document, ZeroConfig& config) {
  const JsonValue* const given = document.find("zero_optimization");
  if (given != nullptr && given->kind == JsonKind::boolean) {
    config.stage = given->boolean ? 1 : 0;
    document.read("allgather_size", config.allgather_bucket_size);
    return;
  }
  if (document.find("allgather_size") != nullptr) {
    document.note(ConfigNoteKind::without_effect, "allgather_size",
                  "belongs to zero_optimization: true; "
                  "/zero_optimization/allgather_bucket_size is the newer key");
  }
  const ConfigSection zero = document.below("zero_optimization");
  std::int64_t stage = 0;
  zero.read("stage", stage, {.least = 0, .greatest = 3});
  config.stage = static_cast<int>(stage);
  read_buckets(zero, config);
  read_switches(zero, config);
  read_parameters(zero, config);
}

}  // namespace zeroproof

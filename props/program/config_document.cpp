#include "props/program/config_document.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "props/program/scheduler_document.h"
#include "props/program/value_json.h"
#include "zeroproof/model/dtype.h"

namespace zeroproof::program {
namespace {

using Json = nlohmann::json;

Json device(OffloadDevice device) {
  return {{"device", device == OffloadDevice::cpu ? "cpu" : "none"}};
}

Json zero_document(const ZeroConfig& config) {
  Json zero = {{"stage", config.stage},
               {"reduce_bucket_size", config.reduce_bucket_size},
               {"allgather_bucket_size", config.allgather_bucket_size},
               {"contiguous_gradients", config.contiguous_gradients},
               {"reduce_scatter", config.reduce_scatter},
               {"use_multi_rank_bucket_allreduce", config.use_multi_rank_bucket_allreduce},
               {"ignore_unused_parameters", config.ignore_unused_parameters},
               {"sub_group_size", config.sub_group_size},
               {"offload_optimizer", device(config.offload_optimizer)},
               {"offload_param", device(config.offload_param)},
               {"memory_efficient_linear", config.memory_efficient_linear},
               {"enable_sanity_checks", config.enable_sanity_checks},
               {"stage3_prefetch_bucket_size", config.stage3_prefetch_bucket_size},
               {"stage3_param_persistence_threshold", config.stage3_param_persistence_threshold},
               {"stage3_model_persistence_threshold", config.stage3_model_persistence_threshold},
               {"stage3_max_live_parameters", config.stage3_max_live_parameters},
               {"stage3_max_reuse_distance", config.stage3_max_reuse_distance},
               {"stage3_module_granularity_threshold", config.stage3_module_granularity_threshold},
               {"leaf_module",
                {{"classes", config.leaf_module.classes},
                 {"names", config.leaf_module.names},
                 {"name_suffixes", config.leaf_module.name_suffixes}}}};
  if (config.overlap_comm) zero["overlap_comm"] = *config.overlap_comm;
  return zero;
}

Json fp16_document(const Fp16Config& fp16) {
  return {{"enabled", fp16.enabled},
          {"loss_scale", fp16.loss_scale},
          {"initial_scale_power", fp16.initial_scale_power},
          {"loss_scale_window", fp16.loss_scale_window},
          {"hysteresis", fp16.hysteresis},
          {"consecutive_hysteresis", fp16.consecutive_hysteresis},
          {"min_loss_scale", fp16.min_loss_scale},
          {"fp16_master_weights_and_grads", fp16.master_weights_and_grads}};
}

Json bf16_document(const Bf16Config& bf16) {
  return {{"enabled", bf16.enabled},
          {"check_grad_overflow", bf16.check_grad_overflow},
          {"bf16_master_weights_and_grads", bf16.master_weights_and_grads},
          {"bf16_optimizer_states", bf16.optimizer_states}};
}

Json autocast_document(const TorchAutocastConfig& autocast) {
  Json json = {{"enabled", autocast.enabled}, {"dtype", dtype_name(autocast.dtype)}};
  if (autocast.lower_precision_safe_modules)
    json["lower_precision_safe_modules"] = *autocast.lower_precision_safe_modules;
  return json;
}

Json optimizer_document(const OptimizerConfig& optimizer) {
  if (optimizer.type == OptimizerType::sgd) {
    const optim::SgdOptions& sgd = optimizer.sgd;
    Json params = {{"lr", sgd.lr},
                   {"momentum", sgd.momentum},
                   {"dampening", sgd.dampening},
                   {"weight_decay", sgd.weight_decay},
                   {"nesterov", sgd.is_nesterov}};
    if (sgd.is_maximizing) params["maximize"] = true;
    return {{"type", "SGD"}, {"params", params}};
  }
  const optim::AdamOptions& adam = optimizer.adam;
  Json params = {{"lr", adam.lr},
                 {"betas", {adam.beta1, adam.beta2}},
                 {"eps", adam.eps},
                 {"weight_decay", adam.weight_decay},
                 {"torch_adam", optimizer.is_torch_class}};
  if (adam.is_maximizing) params["maximize"] = true;
  // AdamW decays decoupled whatever its block says; without that it is Adam.
  const bool is_adamw = optimizer.type == OptimizerType::adamw && adam.is_decay_decoupled;
  if (!is_adamw) params["adam_w_mode"] = adam.is_decay_decoupled;
  return {{"type", is_adamw ? "AdamW" : "Adam"}, {"params", params}};
}

// communication_data_type has names of its own; another dtype keeps its name, and is refused.
std::string_view wire_name(DType dtype) {
  if (dtype == DType::float16) return "fp16";
  if (dtype == DType::bfloat16) return "bf16";
  return dtype == DType::float32 ? "fp32" : dtype_name(dtype);
}

Json document_of(const ZeroConfig& config) {
  const bool is_mean = config.gradient_allreduce_op == GradientAllreduceOp::mean;
  Json json = {{"train_micro_batch_size_per_gpu", config.train_micro_batch_size_per_gpu},
               {"gradient_accumulation_steps", config.gradient_accumulation_steps},
               {"managed_gradient_accumulation", config.managed_gradient_accumulation},
               {"gradient_clipping", config.gradient_clipping},
               {"prescale_gradients", config.prescale_gradients},
               {"gradient_predivide_factor", config.gradient_predivide_factor},
               {"gradient_allreduce_op", is_mean ? "mean" : "sum"},
               {"zero_force_ds_cpu_optimizer", config.zero_force_ds_cpu_optimizer},
               {"zero_optimization", zero_document(config)},
               {"fp16", fp16_document(config.fp16)},
               {"bf16", bf16_document(config.bf16)},
               {"torch_autocast", autocast_document(config.torch_autocast)},
               {"optimizer", optimizer_document(config.optimizer)}};
  if (config.scheduler) json["scheduler"] = Json::parse(scheduler_document(*config.scheduler));
  if (config.communication_data_type)
    json["communication_data_type"] = wire_name(*config.communication_data_type);
  Json types = Json::object();
  if (config.grad_accum_dtype) types["grad_accum_dtype"] = dtype_name(*config.grad_accum_dtype);
  if (config.param_dtype) types["param_dtype"] = dtype_name(*config.param_dtype);
  json["data_types"] = types;
  return json;
}

}  // namespace

nlohmann::json config_json(const ZeroConfig& config) {
  return document_of(config);
}

std::string config_document(const ZeroConfig& config) {
  return document_of(config).dump();
}

std::string changed_document(const ZeroConfig& config, const std::string& pointer,
                             const std::string& value) {
  Json json = document_of(config);
  const Json::json_pointer at(pointer);
  const Json changed = Json::parse(value);
  if (changed.is_null())
    json.at(at.parent_pointer()).erase(at.back());
  else
    json[at] = changed;
  return json.dump();
}

}  // namespace zeroproof::program

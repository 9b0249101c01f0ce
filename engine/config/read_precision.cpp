#include <fmt/format.h>

#include <limits>

#include "engine/config/config_reader.h"

namespace zeroproof {
namespace {

// 2^1023 is the last finite power of two.
constexpr std::int64_t kGreatestScalePower = 1023;

void read_fp16(const ConfigSection& block, Fp16Config& fp16) {
  block.read("enabled", fp16.enabled);
  block.read("loss_scale", fp16.loss_scale);
  std::int64_t power = fp16.initial_scale_power;
  block.read("initial_scale_power", power, {.least = 0, .greatest = kGreatestScalePower});
  fp16.initial_scale_power = static_cast<int>(power);
  block.read("loss_scale_window", fp16.loss_scale_window, {.least = 1});
  block.read("hysteresis", fp16.hysteresis, {.least = 1});
  block.read("consecutive_hysteresis", fp16.consecutive_hysteresis);
  block.read("min_loss_scale", fp16.min_loss_scale, {.least = std::numeric_limits<double>::min()});
  block.read("fp16_master_weights_and_grads", fp16.master_weights_and_grads);
}

void read_bf16(const ConfigSection& block, Bf16Config& bf16) {
  block.read("enabled", bf16.enabled);
  block.read("check_grad_overflow", bf16.check_grad_overflow);
  block.read("bf16_master_weights_and_grads", bf16.master_weights_and_grads);
  block.read("bf16_optimizer_states", bf16.optimizer_states);
}

void read_autocast(const ConfigSection& block, TorchAutocastConfig& autocast) {
  block.read("enabled", autocast.enabled);
  std::optional<DType> dtype;
  block.read("dtype", dtype);
  if (dtype == DType::float32) block.reject("dtype", "is float32; give bfloat16 or float16");
  autocast.dtype = dtype.value_or(autocast.dtype);
  const JsonValue* const modules = block.find("lower_precision_safe_modules");
  if (modules == nullptr || modules->kind == JsonKind::null) return;
  autocast.lower_precision_safe_modules.emplace();
  block.read("lower_precision_safe_modules", *autocast.lower_precision_safe_modules);
}

// DeepSpeed knows three names here, and not the others that its dtypes have.
void read_communication_type(const ConfigSection& document, std::optional<DType>& value) {
  constexpr std::string_view kName = "communication_data_type";
  const JsonValue* const found = document.find(kName);
  if (found != nullptr && found->kind == JsonKind::text) {
    const std::string name = in_lower_case(found->text);
    if (name != "fp16" && name != "bf16" && name != "fp32") {
      document.reject(kName, fmt::format("is {}; give fp16, bf16 or fp32", found->described()));
    }
    value = name == "fp16" ? DType::float16 : name == "bf16" ? DType::bfloat16 : DType::float32;
    return;
  }
  document.read(kName, value);
}

}  // namespace

void read_precision(const ConfigSection& document, ZeroConfig& config) {
  read_fp16(document.below("fp16"), config.fp16);
  const bool is_older = document.find("bf16") == nullptr;
  if (!is_older && document.find("bfloat16") != nullptr) {
    document.note(ConfigNoteKind::without_effect, "bfloat16", "is not read beside bf16");
  }
  read_bf16(document.below(is_older ? "bfloat16" : "bf16"), config.bf16);
  read_autocast(document.below("torch_autocast"), config.torch_autocast);
  read_communication_type(document, config.communication_data_type);
  const ConfigSection types = document.below("data_types");
  types.read("grad_accum_dtype", config.grad_accum_dtype);
  types.read("param_dtype", config.param_dtype);
}

}  // namespace zeroproof

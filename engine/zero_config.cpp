#include "engine/zero_config.h"

#include <fmt/format.h>

#include "engine/config/config_keys.h"
#include "engine/config/config_reader.h"
#include "engine/config/json_value.h"

namespace zeroproof {
namespace {

void read_batch_size(const ConfigSection& document, std::string_view name,
                     std::optional<std::int64_t>& value) {
  std::int64_t given = 0;
  const JsonValue* const found = document.find(name);
  if (found == nullptr || found->kind == JsonKind::null) return;
  document.read(name, given, {.least = 1});
  value = given;
}

void read_batch_sizes(const ConfigSection& document, ParsedConfig& parsed) {
  BatchSizes& sizes = parsed.batch_sizes;
  read_batch_size(document, "train_batch_size", sizes.train_batch_size);
  read_batch_size(document, "train_micro_batch_size_per_gpu", sizes.train_micro_batch_size_per_gpu);
  read_batch_size(document, "gradient_accumulation_steps", sizes.gradient_accumulation_steps);
  ZeroConfig& config = parsed.config;
  config.train_micro_batch_size_per_gpu = sizes.train_micro_batch_size_per_gpu.value_or(1);
  config.gradient_accumulation_steps = sizes.gradient_accumulation_steps.value_or(1);
}

void read_gradients(const ConfigSection& document, ZeroConfig& config) {
  document.read("managed_gradient_accumulation", config.managed_gradient_accumulation);
  document.read("gradient_clipping", config.gradient_clipping);
  document.read("prescale_gradients", config.prescale_gradients);
  document.read("gradient_predivide_factor", config.gradient_predivide_factor);
  document.read("zero_force_ds_cpu_optimizer", config.zero_force_ds_cpu_optimizer);
  const std::string op = document.text("gradient_allreduce_op").value_or("mean");
  if (op == "mean" || op == "Mean" || op == "MEAN") {
    config.gradient_allreduce_op = GradientAllreduceOp::mean;
  } else if (op == "sum" || op == "Sum" || op == "SUM") {
    config.gradient_allreduce_op = GradientAllreduceOp::sum;
  } else {
    document.reject("gradient_allreduce_op",
                    fmt::format("is {}; give \"mean\" or \"sum\"",
                                document.find("gradient_allreduce_op")->described()));
  }
}

Result<ParsedConfig> read_document(const JsonValue& value, const std::string& source) {
  const ConfigSection document(value);
  ParsedConfig parsed;
  const std::string_view family = optimizer_family(read_optimizer_type(document));
  const auto checked = check_config_keys(value, family, source, parsed.ignored);
  if (!checked) return tl::unexpected(checked.error());
  read_batch_sizes(document, parsed);
  read_gradients(document, parsed.config);
  read_zero_optimization(document, parsed.config);
  read_precision(document, parsed.config);
  read_optimizer(document, parsed.config);
  return parsed;
}

}  // namespace

Result<ParsedConfig> parse_ds_config(const std::string& json, const std::string& source) {
  if (json.find_first_not_of(" \t\r\n") == std::string::npos) {
    return fail(ErrorCode::usage,
                fmt::format("{}: empty; a configuration is a JSON object, {{}} the least", source));
  }
  const Result<JsonValue> value = parse_json(json, source);
  if (!value) return tl::unexpected(value.error());
  if (value->kind != JsonKind::object) {
    return fail(ErrorCode::usage, fmt::format("{}: is {}; a configuration is a JSON object", source,
                                              value->described()));
  }
  try {
    return read_document(*value, source);
  } catch (const RejectedValue& rejected) {
    return fail(ErrorCode::usage,
                fmt::format("{}: {}: {}", source, rejected.pointer, rejected.text));
  }
}

}  // namespace zeroproof

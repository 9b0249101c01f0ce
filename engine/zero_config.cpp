#include "zeroproof/engine/zero_config.h"

#include <fmt/format.h>

#include "engine/config/config_keys.h"
#include "engine/config/config_reader.h"
#include "engine/config/ds_config.h"
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

// It is not printed here; but DeepSpeed divides by it ("Infinity" is a text in Hjson).
void check_steps_per_print(const ConfigSection& document) {
  constexpr std::string_view kName = "steps_per_print";
  const JsonValue* const found = document.find(kName);
  const bool is_usable =
      found == nullptr || found->kind == JsonKind::null || found->kind == JsonKind::number;
  if (!is_usable) document.reject(kName, fmt::format("is {}; give a number", found->described()));
}

constexpr std::string_view kBatchSizes[] = {"train_batch_size", "train_micro_batch_size_per_gpu",
                                            "gradient_accumulation_steps"};

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
  const std::string op = in_lower_case(document.text("gradient_allreduce_op").value_or("mean"));
  if (op == "mean") {
    config.gradient_allreduce_op = GradientAllreduceOp::mean;
  } else if (op == "sum") {
    config.gradient_allreduce_op = GradientAllreduceOp::sum;
  } else {
    document.reject("gradient_allreduce_op",
                    fmt::format("is {}; give \"mean\" or \"sum\"",
                                document.find("gradient_allreduce_op")->described()));
  }
}

Result<DsConfig> read_document(const JsonValue& value, const std::string& source,
                               UnknownKeys unknown) {
  DsConfig result;
  ParsedConfig& parsed = result.parsed;
  const ConfigSection document(value, result.notes);
  const std::string_view family = optimizer_family(read_optimizer_type(document));
  const auto checked =
      check_config_keys(value, family, source, unknown, {parsed.ignored, result.notes});
  if (!checked) return tl::unexpected(checked.error());
  read_batch_sizes(document, parsed);
  for (const std::string_view name : kBatchSizes)
    if (document.is_auto(name)) result.automatic_sizes.emplace_back(name);
  read_gradients(document, parsed.config);
  read_zero_optimization(document, parsed.config);
  const ConfigSection zero = document.below("zero_optimization");
  zero.read("compute_grad_norm", result.computes_grad_norm);
  zero.below("offload_optimizer").read("ratio", result.offload_ratio, {.greatest = 1.0});
  read_precision(document, parsed.config);
  read_optimizer(document, parsed.config);
  read_scheduler(document, parsed.config);
  check_steps_per_print(document);
  document.read("zero_allow_untested_optimizer", result.allows_untested_optimizer);
  result.names_optimizer = document.below("optimizer").find("type") != nullptr;
  return result;
}

}  // namespace

std::string_view config_note_kind_name(ConfigNoteKind kind) {
  constexpr std::string_view kNames[] = {"unknown",    "automatic",      "converted",
                                         "batch_size", "without_effect", "replaced"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<DsConfig> read_ds_config(const std::string& text, const std::string& source,
                                UnknownKeys unknown) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return fail(ErrorCode::usage,
                fmt::format("{}: empty; a configuration is a JSON object, {{}} the least", source));
  }
  const Result<JsonValue> value = parse_json(text, source);
  if (!value) return tl::unexpected(value.error());
  if (value->kind != JsonKind::object) {
    return fail(ErrorCode::usage, fmt::format("{}: is {}; a configuration is a JSON object", source,
                                              value->described()));
  }
  try {
    return read_document(*value, source, unknown);
  } catch (const RejectedValue& rejected) {
    return fail(ErrorCode::usage,
                fmt::format("{}: {}: {}", source, rejected.pointer, rejected.text));
  }
}

Result<ParsedConfig> parse_ds_config(const std::string& json, const std::string& source) {
  auto document = read_ds_config(json, source, UnknownKeys::note);
  if (!document) return tl::unexpected(document.error());
  return std::move(document->parsed);
}

}  // namespace zeroproof

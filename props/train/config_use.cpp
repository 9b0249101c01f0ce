#include "props/train/config_use.h"

#include <nlohmann/json.hpp>
#include <string>

#include "props/train/config_document.h"
#include "props/train/config_readings.h"
#include "props/train/engine_target.h"
#include "props/train/window_records.h"

namespace zeroproof::train {
namespace {

using OrderedJson = nlohmann::ordered_json;

bool reads_as(const std::string& document, const ZeroConfig& config) {
  const auto parsed = parse_ds_config(document, "generated");
  return parsed && config_document(parsed->config) == config_document(config);
}

// Without what the other document says, too. An optimizer's type has defaults of its own.
OrderedJson without(const OrderedJson& document, const OrderedJson& other) {
  OrderedJson rest = OrderedJson::object();
  for (const auto& [key, value] : document.items()) {
    const auto at = other.find(key);
    const bool is_whole = at == other.end() || key == "optimizer";
    if (!is_whole && value.is_object() && at->is_object())
      rest[key] = without(value, *at);
    else if (is_whole || *at != value)
      rest[key] = value;
  }
  return rest;
}

// Whoever leaves out what is so anyway says the same.
bool comes_back_short(const ZeroConfig& config) {
  const OrderedJson whole = OrderedJson::parse(config_document(config));
  return reads_as(without(whole, OrderedJson::parse(config_document(ZeroConfig()))).dump(), config);
}

// Of three sizes of batches two say the third.
bool knows_sizes(const ZeroConfig& config, std::int64_t ranks) {
  OrderedJson document = OrderedJson::parse(config_document(config));
  document.erase("gradient_accumulation_steps");
  document["train_batch_size"] =
      ranks * config.train_micro_batch_size_per_gpu * config.gradient_accumulation_steps;
  const auto parsed = parse_ds_config(document.dump(), "generated");
  const auto sized = parsed ? with_batch_sizes(*parsed, ranks) : tl::unexpected(parsed.error());
  return sized && config_document(*sized) == config_document(config);
}

bool comes_back(const ZeroConfig& config, std::int64_t ranks) {
  return reads_as(config_document(config), config) && comes_back_short(config) &&
         knows_sizes(config, ranks);
}

// Also where a loss scale comes with it, which is all right.
bool is_refused(EngineTarget& engines, int number) {
  const RefusedConfig refused = refused_config(engines.engine(0).config(), number);
  const std::string alone = engines.refusal_of_another(refused.config, std::nullopt);
  return !alone.empty() && alone.starts_with(refused.begins) && !alone.starts_with("changed") &&
         engines.refusal_of_another(refused.config, CaseSpec::kCustomLossScale) == alone;
}

// This one and those behind it.
bool are_refused(EngineTarget& engines, int first) {
  constexpr int kInARow = 8;
  bool are = true;
  for (int i = 0; i < kInARow; ++i)
    are = are && is_refused(engines, (first - 1 + i) % kRefusedConfigs + 1);
  return are;
}

bool are_accepted(EngineTarget& engines) {
  bool are = true;
  for (int number = 1; number <= kOddConfigs; ++number)
    are = are && engines.refusal_of_another(odd_config(number), std::nullopt).empty();
  return are;
}

}  // namespace

void read_configuration(const CaseSpec& spec, Pass& pass) {
  auto* const engines = dynamic_cast<EngineTarget*>(&pass.target());
  if (spec.is_read != 0)
    record_refusal(pass, "nothing of a configuration",
                   !engines || comes_back(engines->engine(0).config(), spec.ranks));
  if (spec.is_read > 1)
    record_refusal(pass, "nothing of other documents", !engines || reads_all_of(spec.is_read - 1));
  if (spec.accepts != 0)
    record_refusal(pass, "no configuration that works", !engines || are_accepted(*engines));
  if (spec.refuses != 0)
    record_refusal(pass, "a configuration", !engines || are_refused(*engines, spec.refuses));
}

}  // namespace zeroproof::train

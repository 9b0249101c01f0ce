#include "props/cli/train_config.h"

#include <fmt/format.h>

#include "engine/files/small_file.h"
#include "engine/schedule/learning_rates.h"
#include "props/cli/shell_quote.h"
#include "props/train/configured_scenario.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kLargestConfig = 1U << 20;

train::Precision precision_of(const ZeroConfig& config) {
  if (config.torch_autocast.enabled) return train::Precision::autocast;
  if (config.fp16.enabled) return train::Precision::fp16;
  return config.bf16.enabled ? train::Precision::bf16 : train::Precision::float32;
}

}  // namespace

void ConfigFlags::declare(Flags& flags) {
  flags.add_value("ds-config", path_,
                  {"FILE", "a ds_config.json in place of the built-in configuration"});
  flags.add_switch("strict-config", is_strict_,
                   "refuse unknown keys of --ds-config that DeepSpeed ignores");
}

Result<void> ConfigFlags::take(train::TrainCell& cell, GivenFlags given) {
  if (path_.empty()) return {};
  const auto text = read_small_file(path_, kLargestConfig);
  if (!text) return tl::unexpected(text.error());
  const auto document =
      read_ds_config(*text, path_, is_strict_ ? UnknownKeys::refuse : UnknownKeys::note);
  if (!document) return tl::unexpected(document.error());
  const auto run =
      run_config_of(*document, cell.world_size, given.has_stage ? cell.stage : kDocumentsStage);
  if (!run) return fail(run.error().code, fmt::format("{}: {}", path_, run.error().text));
  report_ = {path_, run->notes, document->parsed.ignored};
  if (!given.has_stage) cell.stage = run->config.stage;
  if (!given.has_dtype) cell.precision = precision_of(run->config);
  cell.config = run->config;
  return {};
}

Result<void> ConfigFlags::fit(const train::TrainCell& cell) {
  if (!cell.config) return {};
  const auto named = train::find_scenario(cell.scenario);
  if (!named) return tl::unexpected(named.error());
  const train::TrainScenario scenario = train::configured(**named, cell);
  for (ConfigNote& note : train::replaced_notes(scenario, cell))
    report_.notes.push_back(std::move(note));
  if (train::is_configuration_refused(scenario, cell)) return {};
  const ZeroConfig config = train::config_of(scenario, cell);
  const auto valid = validate(config).and_then([&]() -> Result<void> {
    const auto rates = LearningRates::make(config, 1);
    return rates ? Result<void>() : tl::unexpected(rates.error());
  });
  if (valid) return {};
  return fail(valid.error().code, fmt::format("{}: with --scenario {} and the flags: {}", path_,
                                              cell.scenario, valid.error().text));
}

VerbResult ConfigFlags::in_report(VerbResult result) const {
  if (path_.empty()) return result;
  result.text = [this, text = result.text] { return text() + this->text(); };
  result.json = [this, json = result.json] { return in_json(json()); };
  return result;
}

std::string ConfigFlags::flag() const {
  return path_.empty() ? std::string() : " --ds-config " + shell_quote(path_);
}

}  // namespace zeroproof

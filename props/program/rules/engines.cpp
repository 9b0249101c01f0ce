// Engines that are made for a while, or refused.
#include <nlohmann/json.hpp>

#include "props/program/config_difference.h"
#include "props/program/rules.h"
#include "zeroproof/engine/zero_config.h"

namespace zeroproof::program {
namespace {

using Json = nlohmann::json;

// The document with one key set; an error where the key or the value is no JSON.
Result<std::string> document_with(const std::string& document, const TryConfig& config) {
  try {
    Json changed = Json::parse(document);
    changed[Json::json_pointer(config.key)] = Json::parse(config.value);
    return changed.dump();
  } catch (const Json::exception& error) {
    return no_sense("'" + config.key + "' cannot be set to '" + config.value +
                    "': " + std::string(error.what()));
  }
}

bool can_be_made(const std::string& document) {
  const auto parsed = parse_ds_config(document, "program");
  return parsed && validate(parsed->config);
}

}  // namespace

Verdict check(Walk& walk, const TemporaryEngine& engine) {
  State& state = walk.state();
  if (const auto found = engine_of(state, engine.engine); !found)
    return tl::unexpected(found.error());
  if (state.backward_around() || state.is_in(Frame::Kind::forward_hook))
    return no_sense("an engine that is made in the middle of a pass");
  return Expectation{};
}

Verdict check(Walk& walk, const TryConfig& config) {
  State& state = walk.state();
  if (const auto found = engine_of(state, config.engine); !found)
    return tl::unexpected(found.error());
  if (!state.is_at_top()) return no_sense("an engine that is asked for in the middle of something");
  ZeroConfig own = state.config();
  own.stage = state.stage;
  const auto document = document_with(config_difference(own), config);
  if (!document) return tl::unexpected(document.error());
  return can_be_made(*document) ? Expectation{} : refused_otherwise();
}

}  // namespace zeroproof::program

// Engines that are made for a while, or refused.
#include <exception>

#include "props/program/config_document.h"
#include "props/program/rules.h"
#include "zeroproof/engine/zero_config.h"

namespace zeroproof::program {
namespace {

// An error where the key stands below one that is not there, or the value is no JSON.
Result<std::string> document_with(const ZeroConfig& own, const TryConfig& config) {
  try {
    return changed_document(own, config.key, config.value);
  } catch (const std::exception& error) {
    return no_sense("'" + config.key + "' cannot be set to '" + config.value +
                    "': " + error.what());
  }
}

bool can_be_made(const std::string& document, int ranks) {
  const auto parsed = parse_ds_config(document, "program");
  if (!parsed) return false;
  const auto config = with_batch_sizes(*parsed, ranks);
  return config && validate(*config);
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
  const auto document = document_with(own, config);
  if (!document) return tl::unexpected(document.error());
  return can_be_made(*document, state.ranks) ? Expectation{} : refused_otherwise();
}

}  // namespace zeroproof::program

#pragma once

#include <string>

#include "zeroproof/engine/zero_config.h"

namespace zeroproof::program {

// The ds_config.json of a configuration, every key of it.
std::string config_document(const ZeroConfig& config);

// The same with one key set: `pointer` is a JSON pointer, `value` JSON; a null takes the key away.
std::string changed_document(const ZeroConfig& config, const std::string& pointer,
                             const std::string& value);

}  // namespace zeroproof::program

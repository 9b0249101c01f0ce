#pragma once

#include <string>

#include "zeroproof/engine/zero_config.h"

namespace zeroproof::train {

// The ds_config.json of a configuration, every key of it.
std::string config_document(const ZeroConfig& config);

// The same with one key set: `pointer` is a JSON pointer, `value` JSON; a null takes the key away.
std::string changed_document(const ZeroConfig& config, const std::string& pointer,
                             const std::string& value);

// How many configurations there are that no engine can be made from, and the one of that number,
// counted from 1: as the given one, and with something in it that is refused whatever else it says.
inline constexpr int kRefusedConfigs = 53;
struct RefusedConfig {
  ZeroConfig config;
  std::string begins;  // what its error begins with: the id, where there is one
};
RefusedConfig refused_config(const ZeroConfig& given, int number);

// How many there are that look odd and work, as what is odd nothing uses; and one, counted from 1.
inline constexpr int kOddConfigs = 12;
ZeroConfig odd_config(int number);

}  // namespace zeroproof::train

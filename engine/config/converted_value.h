#pragma once

#include <cstdint>
#include <optional>

#include "engine/config/json_value.h"

namespace zeroproof {

// What pydantic, by which DeepSpeed checks types, makes of a value of another type. No value where
// it raises too.
std::optional<bool> converted_switch(const JsonValue& value);  // 0, 1, "true", "off", "yes", ...
std::optional<std::int64_t> converted_integer(const JsonValue& value);  // "200"
std::optional<double> converted_number(const JsonValue& value);         // "1e-3"; finite

}  // namespace zeroproof

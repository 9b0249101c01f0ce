#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "sim/trace/json_line.h"
#include "sim/trace/json_object.h"

namespace zeroproof {

// Appends a value of a parsed line as JSON text and returns the index after it.
std::size_t append_json_value(std::span<const JsonLineValue> values, std::size_t at,
                              std::string& out);

// Copies the members of a parsed line, all but those named, in their order.
void copy_members(std::span<const JsonLineValue> values,
                  std::initializer_list<std::string_view> except, JsonObject& to);

}  // namespace zeroproof

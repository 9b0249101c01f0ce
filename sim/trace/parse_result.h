#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "sim/trace/json_line.h"

namespace zeroproof {

// What is wrong with a record, as one sentence without file and line.
using ParseResult = tl::expected<void, std::string>;

// Text of a user's file made fit for one line of a message: clipped, no control characters.
std::string printable(std::string_view text);

// A value for messages: `"abc"`, `17`, `an object`.
std::string describe(const JsonLineValue& value);

}  // namespace zeroproof

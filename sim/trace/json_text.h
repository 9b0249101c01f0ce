#pragma once

#include <string>
#include <string_view>

namespace zeroproof {

// Appends `text` as a JSON string, quotes included. Bytes that are no UTF-8 become U+FFFD, so
// the result is always valid.
void append_json_string(std::string_view text, std::string& out);

// Appends the shortest decimal that reads back as the same double; nan, inf and -inf as the
// strings hooktrace uses. `is_integral`: 2 instead of 2.0.
void append_json_number(double value, bool is_integral, std::string& out);

}  // namespace zeroproof

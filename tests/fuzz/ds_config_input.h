#pragma once

#include <string>

#include "engine/zero_config.h"
#include "model/check.h"

namespace zeroproof {

// Everything that looks at a ds_config.json from outside, over any bytes: an answer, and an error
// of one line.
inline void read_any_config(const std::string& bytes) {
  const auto is_line = [](const Error& error) {
    return !error.text.empty() && error.text.find('\n') == std::string::npos;
  };
  const auto parsed = parse_ds_config(bytes, "input");
  if (!parsed) {
    ZP_CHECK(is_line(parsed.error()), "an error is one line");
    return;
  }
  const auto valid = validate(parsed->config);
  ZP_CHECK(valid || is_line(valid.error()), "an error is one line");
  const auto sized = with_batch_sizes(*parsed, 3);
  ZP_CHECK(sized || is_line(sized.error()), "an error is one line");
}

}  // namespace zeroproof

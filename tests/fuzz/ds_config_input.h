#pragma once

#include <string>

#include "engine/config/ds_config.h"
#include "model/check.h"
#include "zeroproof/engine/zero_config.h"

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
  const auto document = read_ds_config(bytes, "input", UnknownKeys::note);
  ZP_CHECK(document, "what parses without notes parses with them");
  for (const ConfigNote& note : document->notes)
    ZP_CHECK(note.text.find('\n') == std::string::npos, "a note is one line");
  const auto run = run_config_of(*document, 3);
  ZP_CHECK(run || is_line(run.error()), "an error is one line");
  ZP_CHECK(!run || validate(run->config), "what is run is valid");
}

}  // namespace zeroproof

#pragma once

#include <string>
#include <vector>

#include "engine/config/ds_config.h"

namespace zeroproof {

// What a run says about the ds_config.json that it was given.
struct ConfigReport {
  std::string path;
  std::vector<ConfigNote> notes;
  std::vector<std::string> ignored;  // JSON pointers
};

// A line a note; keys that are not read share a line. Empty without a path.
std::string config_text(const ConfigReport& report);

// A report of the command, with the member "config" of docs/reference/output.md; as it is without a
// path.
std::string with_config_json(const std::string& document, const ConfigReport& report);

}  // namespace zeroproof

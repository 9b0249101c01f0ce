#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/read_file.h"

namespace zeroproof {

// By id: the schedule of the smallest case of each fault that a hunt has found, as the later of its
// hunts wrote it.
inline std::map<std::string, std::string> pinned_schedules() {
  std::map<std::string, std::string> schedules;
  for (const char* file : {"counterexamples", "further_faults", "further_faults_closed"}) {
    const auto rows = nlohmann::json::parse(
        read_file(std::string(ZP_SOURCE_DIR "/tests/mutation/") + file + ".json"));
    for (const auto& [id, row] : rows.items())
      if (row.contains("schedule")) schedules[id] = row.at("schedule").get<std::string>();
  }
  return schedules;
}

}  // namespace zeroproof

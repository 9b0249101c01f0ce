#pragma once

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

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

// The page of a fault's timeline, beneath docs: a page a letter.
inline std::string timeline_page(std::string_view id) {
  return fmt::format("timelines/{}.md", id.substr(0, 1));
}

// To its section there, for a page of docs.
inline std::string timeline_link(std::string_view id) {
  std::string anchor(id);
  anchor[0] = static_cast<char>(anchor[0] - 'A' + 'a');
  return fmt::format("[{}]({}#{})", id, timeline_page(id), anchor);
}

}  // namespace zeroproof

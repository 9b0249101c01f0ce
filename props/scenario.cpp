#include "props/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "model/nearest_name.h"
#include "props/scenario_parser.h"

namespace zeroproof {

Result<Scenario> parse_scenario(std::string_view text, std::string_view where) {
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    return fail(ErrorCode::usage,
                fmt::format("{}: not JSON at byte {}: {}", where, error.byte, error.what()));
  }
  return ScenarioParser(where).parse(document);
}

Result<Scenario> load_scenario(const std::string& id_or_path) {
  for (const ScenarioFile& file : builtin_scenarios()) {
    if (file.id == id_or_path) return parse_scenario(file.text, id_or_path);
  }
  if (!id_or_path.ends_with(".json")) {
    std::vector<std::string_view> known;
    for (const ScenarioFile& file : builtin_scenarios()) known.push_back(file.id);
    return fail(ErrorCode::usage,
                fmt::format("unknown scenario '{}': {}; `zeroproof list scenarios` shows all, a "
                            "*.json path is read as a file",
                            id_or_path, did_you_mean(id_or_path, known)));
  }
  std::ifstream file(id_or_path, std::ios::binary);
  std::ostringstream text;
  // Unlike an iterator, `<<` does not throw when the file is a directory.
  if (!file || !(text << file.rdbuf())) {
    return fail(ErrorCode::usage, fmt::format("{}: cannot be read as a scenario file", id_or_path));
  }
  return parse_scenario(text.str(), id_or_path);
}

}  // namespace zeroproof

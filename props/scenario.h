#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/protocol/program.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// A named program to explore. docs/reference/scenarios.md describes the file format.
struct Scenario {
  std::string id;
  std::string title;
  std::string source;  // where it comes from: a section, a bug
  ProtocolProgram program;
};

// One scenario file as it was written.
struct ScenarioFile {
  std::string_view id;
  std::string_view text;
};

// The scenarios built into this binary, in the order of their ids.
std::span<const ScenarioFile> builtin_scenarios();

// Parses a scenario. `where` names the file in errors, which carry the JSON pointer.
Result<Scenario> parse_scenario(std::string_view text, std::string_view where);

// A built-in id, or the path of a *.json file. An error names the nearest ids.
Result<Scenario> load_scenario(const std::string& id_or_path);

// The JSON of a scenario; parse_scenario gives the same one back.
std::string scenario_text(const Scenario& scenario);

// The same scenario with `factor` parameters in the place of each one: p4 becomes a chain of
// layers, its nodes keep their relative sequence numbers. `factor` is at least 1.
Scenario widen(const Scenario& scenario, std::uint32_t factor);

}  // namespace zeroproof

#include "props/export/torch_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "model/nearest_name.h"
#include "props/export/model_class.h"
#include "props/export/name_scope.h"
#include "props/export/program_text.h"

namespace zeroproof {
namespace {

constexpr std::string_view kProgramMark = "# <the program stands here>\n";

constexpr std::array<std::pair<std::string_view, ScriptFramework>, 4> kFrameworks = {
    {{"deepspeed", ScriptFramework::deepspeed},
     {"ddp", ScriptFramework::ddp},
     {"fsdp2", ScriptFramework::fsdp2},
     {"torch", ScriptFramework::ddp}}};

std::string_view python_bool(bool value) {
  return value ? "True" : "False";
}

std::string docstring(const Scenario& scenario, const TorchScriptOptions& options) {
  std::string text = fmt::format("{}: {}", scenario.id, scenario.title);
  if (!scenario.source.empty()) text += fmt::format(" ({})", scenario.source);
  text += fmt::format(
      "\n\nRuns the same program with plain PyTorch and under {}, on the CPU over gloo, and prints "
      "what was\nobserved against what was expected. Exit code 1: the symptom shows; 0: it does "
      "not; 77: not importable.\n",
      script_framework_name(options.framework));
  if (!options.note.empty()) text += "\n" + options.note;
  std::string safe;
  for (const char byte : text)
    safe += byte == '\\' || byte == '"' ? std::string(1, '\'') : std::string(1, byte);
  return fmt::format("#!/usr/bin/env python3\n\"\"\"{}\"\"\"\n", safe);
}

std::string claims_text(const std::vector<ScriptClaim>& claims) {
  std::string text =
      "CLAIMS = (  # what the program breaks, by zeroproof's search; empty: anything\n";
  for (const auto& [number, statement] : claims)
    text += fmt::format("    ({}, {}),\n", python_string(number), python_string(statement));
  return text + ")\n";
}

std::string settings_text(const Scenario& scenario, const TorchScriptOptions& options) {
  const auto& engines = scenario.program.engines;
  const bool requires_scale = std::any_of(engines.begin(), engines.end(),
                                          [](const auto& one) { return one.requires_scale; });
  std::string text = fmt::format("TITLE = {}\n", python_string(scenario.id));
  text += fmt::format("FRAMEWORK = \"{}\"\n", script_framework_name(options.framework));
  text += fmt::format("STAGE = {}\n", options.framework == ScriptFramework::deepspeed
                                          ? fmt::format("{}", options.stage)
                                          : "None");
  text += fmt::format("WORLD_SIZE = {}\nGAS = {}  # gradient_accumulation_steps\n",
                      options.world_size, options.accumulation_steps);
  text += fmt::format("MODE = \"{}\"  # count_fallback: as if PyTorch had no queue_callback\n",
                      policy_mode_name(options.mode));
  text += fmt::format("OVERLAP_COMM = {}\nREQUIRES_SCALE = {}\n", python_bool(options.has_overlap),
                      python_bool(requires_scale));
  text += "ZERO = {}  # more of zero_optimization\n";
  std::string ddp;
  if (options.has_unused_detection) ddp += "\"find_unused_parameters\": True, ";
  if (options.has_static_graph) ddp += "\"static_graph\": True, ";
  text += fmt::format("DDP = {{{}}}\n", ddp.substr(0, ddp.empty() ? 0 : ddp.size() - 2));
  return text + claims_text(options.claims) + "\n";
}

Result<std::string> models_text(const ProtocolProgram& program) {
  std::string text;
  std::string table = "MODELS = {";
  NameScope scope;
  for (std::size_t at = 0; at < program.engines.size(); ++at) {
    const std::string& name = program.engines[at].name;
    const std::string class_name = scope.name(name, "Model_" + name);
    auto made = model_class(program, EngineId{static_cast<std::int32_t>(at)}, class_name);
    if (!made) return made;
    text += *made + "\n\n";
    table += fmt::format("{}{}: {}", at == 0 ? "" : ", ", python_string(name), class_name);
  }
  return text + table + "}\n\n\n";
}

}  // namespace

Result<ScriptFramework> script_framework_of(std::string_view name) {
  std::vector<std::string_view> known;
  for (const auto& [word, framework] : kFrameworks) {
    if (word == name) return framework;
    known.push_back(word);
  }
  return fail(ErrorCode::usage, fmt::format("export: --framework: unknown framework '{}': {}", name,
                                            did_you_mean(name, known)));
}

std::string_view script_framework_name(ScriptFramework framework) {
  return kFrameworks[static_cast<std::size_t>(framework)].first;
}

Result<std::string> torch_script(const Scenario& scenario, const TorchScriptOptions& options) {
  auto models = models_text(scenario.program);
  if (!models) return models;
  auto program = program_text(scenario.program);
  if (!program) return program;
  const std::string_view harness = torch_harness();
  const std::size_t mark = harness.find(kProgramMark);
  return fmt::format("{}{}{}{}{}{}", docstring(scenario, options), settings_text(scenario, options),
                     harness.substr(0, mark), *models, *program,
                     harness.substr(mark + kProgramMark.size()));
}

}  // namespace zeroproof

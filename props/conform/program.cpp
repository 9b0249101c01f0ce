#include "props/conform/program.h"

#include <algorithm>

namespace zeroproof {
namespace {

std::vector<ConformProgram> gather() {
  std::vector<ConformProgram> programs;
  for (const auto group : {
           plain_graph_programs(),
           engine_programs(),
           accumulation_programs(),
           hook_programs(),
           checkpoint_programs(),
           transform_programs(),
           autocast_programs(),
           module_programs(),
           framework_programs(),
           buffer_programs(),
           checkpoint_context_programs(),
           graph_api_programs(),
       })
    programs.insert(programs.end(), group.begin(), group.end());
  std::sort(programs.begin(), programs.end(),
            [](const ConformProgram& a, const ConformProgram& b) { return a.name < b.name; });
  return programs;
}

}  // namespace

const std::vector<ConformProgram>& conform_programs() {
  static const std::vector<ConformProgram> kPrograms = gather();
  return kPrograms;
}

const ConformProgram* find_program(std::string_view name) {
  for (const ConformProgram& program : conform_programs())
    if (program.name == name) return &program;
  return nullptr;
}

}  // namespace zeroproof

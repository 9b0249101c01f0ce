#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "props/conform/program_run.h"

namespace zeroproof {

// How many programs there are: 98 came with docs/spec/autograd.md 24, and 14 are about what PyTorch
// added after 2.11.
inline constexpr int kProgramsSpecified = 112;

// Our port of one recorded program. `name` is the header's.
struct ConformProgram {
  std::string_view name;
  void (*run)(ProgramRun& run);
};

// Every ported program, in order of their names. Static.
const std::vector<ConformProgram>& conform_programs();

// Null for a program that is not ported.
const ConformProgram* find_program(std::string_view name);

// One a file of programs.
std::span<const ConformProgram> plain_graph_programs();
std::span<const ConformProgram> engine_programs();
std::span<const ConformProgram> accumulation_programs();
std::span<const ConformProgram> hook_programs();
std::span<const ConformProgram> checkpoint_programs();
std::span<const ConformProgram> transform_programs();
std::span<const ConformProgram> autocast_programs();
std::span<const ConformProgram> module_programs();
std::span<const ConformProgram> framework_programs();
std::span<const ConformProgram> buffer_programs();
std::span<const ConformProgram> checkpoint_context_programs();
std::span<const ConformProgram> graph_api_programs();

}  // namespace zeroproof

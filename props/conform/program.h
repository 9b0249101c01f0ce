#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "props/conform/program_run.h"

namespace zeroproof {

// How many programs autograd_semantics section 24 has.
inline constexpr int kProgramsSpecified = 98;

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

}  // namespace zeroproof

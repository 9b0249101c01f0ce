#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "props/hunt/program_hunt.h"
#include "zeroproof/engine/runtime/cuda/cuda_world.h"

namespace zeroproof::hunt {

// A program in the simulated world beside the same program on host threads or GPUs.
struct BesideRun {
  std::uint64_t tokens = 0;  // of all ranks of the last world, in the simulated one
  std::uint64_t values = 0;  // numbers that all ranks saw
  std::string difference;    // the first one, one line; empty: all agree
  bool has_run = true;       // false: more ranks than GPUs
};

// Order tokens of every rank, and what each rank sees: bit for bit, but within the bound of real
// data on GPUs. `gpus` null: host threads. A program that the simulated world does not end would
// hang elsewhere: then `difference` says what it found. The order of ranks comes from `chooser`.
BesideRun run_beside(const program::RunnableProgram& runnable, const Gpus* gpus, Chooser& chooser);

struct BesideFound {
  std::uint64_t case_number = 0;
  std::string difference;
  std::vector<std::uint32_t> values;  // choices of program and order, minimised
  std::string text;                   // the program
  std::size_t choices_before = 0;
  std::size_t shrink_runs = 0;
};

struct BesideReport {
  std::uint64_t cases = 0;
  std::uint64_t skipped = 0;  // of more ranks than GPUs
  std::uint64_t tokens = 0;
  std::uint64_t values = 0;
  double seconds = 0.0;
  std::vector<BesideFound> findings;
};

// Cases 0, 1, … of the options; each finding is minimised if asked for.
BesideReport search_beside(const ProgramHuntOptions& options, const Gpus* gpus,
                           const ProgramHuntWatch& watch);

}  // namespace zeroproof::hunt

#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "props/interpreter/engine_target.h"
#include "props/interpreter/observation.h"
#include "props/program/contract.h"
#include "props/program/program.h"
#include "props/train/run_watch.h"
#include "sim/world/finding.h"
#include "zeroproof/engine/runtime/cuda/cuda_world.h"
#include "zeroproof/internal/model/choice.h"

namespace zeroproof::program {

// A program that can run: with its contract and its data.
class RunnableProgram {
 public:
  // Copies the program. An error as Contract::of.
  static Result<std::unique_ptr<RunnableProgram>> make(Program program);
  // The same with the data of another one, which it is compared with.
  static Result<std::unique_ptr<RunnableProgram>> make_beside(Program program,
                                                              const RunnableProgram& other,
                                                              DataChange change);
  explicit RunnableProgram(Program program);  // see make()
  RunnableProgram(Program program, const DataPlan& data, DataChange change);
  RunnableProgram(const RunnableProgram&) = delete;
  RunnableProgram& operator=(const RunnableProgram&) = delete;

  const Program& program() const { return program_; }
  const Contract& contract() const { return contract_; }
  const DataPlan& data() const { return data_; }

  // One world of ranks: statements [begin, end) of the body, after the checkpoint `resumes`.
  struct Segment {
    std::size_t begin = 0;
    std::size_t end = 0;
    int ranks = 1;
    ZeroConfig config;
    std::optional<std::string> resumes;  // a tag; none: the first world
  };
  const std::vector<Segment>& segments() const { return segments_; }

 private:
  Result<void> prepare();

  Program program_;
  Contract contract_;
  DataPlan data_;
  std::vector<Segment> segments_;
};

// The results of one rank of one world.
struct RankRun {
  Observations seen;
  std::exception_ptr error;              // null: its statements came to their end
  std::vector<std::int64_t> rest_bytes;  // live on the device after each of RunOptions::rests
};

struct SegmentRun {
  std::vector<RankRun> ranks;
  std::vector<sim::Finding> findings;  // of the simulated world
  bool has_failed() const;
};

struct ProgramRun {
  std::vector<SegmentRun> segments;  // up to the first that failed
  std::uint64_t steps = 0;           // of simulated worlds
  bool has_failed() const { return !segments.empty() && segments.back().has_failed(); }
};

struct RunOptions {
  bool observes = true;
  EngineVariant variant = {};
  Chooser* chooser = nullptr;        // of simulated worlds; null: host threads, or GPUs
  Device device = Device::cpu();     // of tensors, in whatever world
  const Gpus* gpus = nullptr;        // one for each rank of every world; null: host threads
  bool preempts = false;             // before every call that others see
  train::RunWatch* watch = nullptr;  // of the last world; null for none
  std::set<std::size_t> rests = {};  // top-level statements; see rest_points.h
};

// In a simulated world, on host threads or on GPUs.
ProgramRun run_program(const RunnableProgram& runnable, const RunOptions& options);

// The unsharded reference: of each world, of each rank, what it saw. Throws where the program is no
// program.
std::vector<std::vector<Observations>> run_reference(const RunnableProgram& runnable);

}  // namespace zeroproof::program

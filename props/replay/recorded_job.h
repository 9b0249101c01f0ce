#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/trace/record.h"
#include "zeroproof/model/ids.h"
#include "zeroproof/model/result.h"

namespace zeroproof::recorded {

// What one rank of a job did, as far as a program can say it (docs/reference/program.md). Plain
// data; names are those of the recording.

struct ModuleCall {
  std::string module;
  std::int64_t checkpoint = -1;  // number of the torch.utils.checkpoint around it; -1: none
};

struct Forward {
  std::vector<ModuleCall> calls;  // of modules, outer ones too, in their order
};

struct Backward {
  bool is_of_engine = false;               // engine.backward; else tensor.backward
  bool keeps_graph = false;                // retain_graph
  std::optional<std::uint64_t> root = {};  // the largest sequence number of its roots
  std::set<std::string> modules = {};      // whose parameters got a gradient
  bool is_in_no_sync = false;              // by DDP or FSDP2
  bool raised = false;
};

enum class Act : std::uint8_t { forward, backward, scale, step, zero_grad, enter, leave };

struct Entry {
  Act act = Act::forward;
  EngineId engine;          // none: of no engine
  std::size_t index = 0;    // of forward and backward: in its list
  bool is_no_sync = false;  // of enter and leave; else coalesce_grad_reduction
};

struct Job {
  HeaderRecord header;
  std::vector<ParamRecord> params;
  std::vector<Forward> forwards;
  std::vector<Backward> backwards;
  std::vector<Entry> entries;                    // in their order
  std::map<std::string, std::string> settings;   // marks with a number: name to number
  std::set<std::int64_t> reentrant;              // checkpoints whose recompute ran a backward
  std::map<std::string, std::int64_t> left_out;  // what a program cannot say, and how often
};

// The module that owns a parameter: "l1" of "l1.weight"; kRootModule of a name without a dot.
inline constexpr const char* kRootModule = "root";
std::string owner_of(const std::string& param);

// Reads a trace up to its `steps_max`-th step. Errors as TraceReader.
Result<Job> read_job(const std::string& path, std::int64_t steps_max);

}  // namespace zeroproof::recorded

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "props/replay/properties_level.h"
#include "props/replay/queue_level.h"
#include "props/replay/run_group.h"
#include "props/replay/state_level.h"
#include "props/replay/story_level.h"
#include "sim/trace/structure_check.h"
#include "zeroproof/engine/hooks/policies.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

struct ReplayLevels {
  bool has_queue = true;
  bool has_state = true;
  bool has_properties = true;
};

struct ReplayOptions {
  ReplayLevels levels;
  bool has_story = false;          // follow what diagnose() wants to know
  std::string policy;              // empty: as recorded, see replay_trace
  std::optional<PolicyMode> mode;  // nullopt: as recorded
};

// What one file holds for the rules to look at.
struct TraceCounts {
  std::uint64_t collectives = 0;
  std::uint64_t messages = 0;
  std::uint64_t backwards = 0;  // graph tasks
  std::uint64_t hooks = 0;      // gradients that were accumulated
  std::uint64_t steps = 0;      // of optimizers
};

// What one trace showed. A level that was not asked for, or never started, is absent. After a
// fault the levels speak about what stood before it.
struct TraceReplay {
  std::string path;
  std::string program;
  std::uint64_t events = 0;
  std::optional<QueueReport> queue;
  std::optional<StateReport> state;
  std::optional<PropertiesReport> properties;
  std::vector<StructureFinding> structure;  // broken rules of the format; the first of them
  std::uint64_t structure_count = 0;
  std::optional<Error> fault;
  bool has_defect = false;          // a diagnosis names it: see mark_defects
  std::optional<TraceStory> story;  // absent: the file could not be opened, or levels were named
  TraceCounts counts;

  bool agrees() const;  // every level that is there, and no defect among the diagnoses
  bool is_ok() const { return !fault && agrees(); }
};

struct ReplaySummary {
  std::size_t traces = 0;  // ok + mismatched + unreadable
  std::size_t ok = 0;
  std::size_t mismatched = 0;
  std::size_t unreadable = 0;
};

struct ReplayReport {
  std::vector<TraceReplay> traces;  // in the order of adding
  std::vector<RunComparison> runs;  // of several ranks; with a story only
  std::size_t digest_bytes = 0;     // kept of all files for their comparison
  bool is_interrupted = false;

  ReplaySummary summary() const;
};

// Replays traces one after the other, each file read once, all levels in the same pass, and
// compares the files of one run with each other at the end. Not thread-safe.
class Replay {
 public:
  // `should_stop` is asked every few thousand records; may be empty.
  explicit Replay(ReplayOptions options, std::function<bool()> should_stop = {});

  // Policy and mode of the state level: those of the options, else those of the trace's header,
  // else deepspeed-0.18.7 with graph-task callbacks. Errors are faults of the trace, except code
  // usage: the options themselves cannot work.
  Result<void> add(const std::string& path);

  // A trace that was followed elsewhere (TraceReplayer), with its digest.
  void add(TraceReplay trace, const RunFacts& facts, RankDigest digest);

  ReplayReport finish();

 private:
  ReplayOptions options_;
  std::function<bool()> should_stop_;
  RunGroup group_;
  std::vector<std::size_t> grouped_;  // index into report_.traces of each file of group_
  ReplayReport report_;
};

}  // namespace zeroproof

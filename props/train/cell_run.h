#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "props/train/full_values.h"
#include "props/train/run_watch.h"
#include "sim/schedule.h"
#include "sim/world/finding.h"
#include "zeroproof/engine/engine_error.h"
#include "zeroproof/internal/engine/runtime/memory.h"
#include "zeroproof/internal/model/choice.h"

namespace zeroproof::train {

// The results of one rank of a run.
struct RankRun {
  std::vector<WindowValues> windows;
  double loss_scale = 1.0;
  MemoryStats memory;
  std::vector<std::int64_t> live_bytes;  // on the device, at the end of each window
  bool has_changed_gradients = false;    // by a tensor.backward() that threw
  std::exception_ptr error;              // null: its program came to its end
};

struct CellRun {
  std::vector<RankRun> ranks;
  std::vector<Choices> nodes;          // by rank: which node ran next, where that was chosen
  Fingerprint state;                   // of the simulated world at its end
  Fingerprint order_class;             // of the same
  std::vector<sim::Finding> findings;  // of the simulated world
  std::uint64_t steps = 0;             // of the same

  bool has_failed() const;
  // first_failed(), of a run that has failed.
  std::size_t deciding_rank() const;
};

// Which node runs next where several may.
enum class NodeOrder : std::uint8_t {
  faithful,  // as PyTorch orders them
  shared,    // any legal order, and every rank follows the rank that comes there first
  each,      // any legal order, on every rank for itself
};

struct CellRunOptions {
  bool collects_values = false;
  RunWatch* watch = nullptr;              // null for none
  Chooser* chooser = nullptr;             // of the simulator, in place of cell.sim's scheduler
  NodeOrder nodes = NodeOrder::faithful;  // of the simulator; it decides that as well
  // By rank, on either runtime: what decides it instead. Empty for none; must outlive the run.
  std::vector<Chooser*> node_choosers = {};
};

// One cell on the host runtime, a thread a rank, on GPUs, or in a simulated world; with a job its
// ranks are processes, each of which calls this and has the results of all. An error of the
// engine ends the program of its rank and no other: misuse has to be refused on every rank by
// itself, at the same call.
CellRun run_ranks(const TrainScenario& scenario, const TrainCell& cell,
                  const CellRunOptions& options);

std::string text_of(const std::exception_ptr& error);
std::optional<EngineErrorId> engine_error_of(const std::exception_ptr& error);

// The first of `ranks`, each with an `error`, of which something went wrong decides: by an error of
// the engine before any other, so that ranks that were left alone come last. The end: none failed.
template <class Ranks>
auto first_failed(const Ranks& ranks) {
  const auto is_own = [](const auto& rank) { return rank.error && engine_error_of(rank.error); };
  const auto has_failed = [](const auto& rank) { return rank.error != nullptr; };
  const auto own = std::ranges::find_if(ranks, is_own);
  return own != ranks.end() ? own : std::ranges::find_if(ranks, has_failed);
}
// What each of `ranks`, each with an `error`, threw.
template <class Ranks>
std::vector<std::exception_ptr> errors_of(const Ranks& ranks) {
  std::vector<std::exception_ptr> errors;
  for (const auto& rank : ranks) errors.push_back(rank.error);
  return errors;
}
bool is_configuration_error(const std::exception_ptr& error);

}  // namespace zeroproof::train

#pragma once

#include <exception>
#include <optional>
#include <vector>

#include "engine/engine_error.h"
#include "engine/runtime/memory.h"
#include "model/choice.h"
#include "props/train/full_values.h"
#include "props/train/run_watch.h"

namespace zeroproof::train {

// What one rank of a run left behind.
struct RankRun {
  std::vector<WindowValues> windows;
  double loss_scale = 1.0;
  MemoryStats memory;
  bool has_changed_gradients = false;  // by a tensor.backward() that threw
  std::exception_ptr error;            // null: its program came to its end
};

struct CellRun {
  std::vector<RankRun> ranks;

  bool has_failed() const;
  // The first rank of which something went wrong decides: by an error of the engine before any
  // other, so that ranks that were left alone come last. Of a run that has failed.
  std::size_t deciding_rank() const;
};

struct CellRunOptions {
  bool collects_values = false;
  RunWatch* watch = nullptr;  // null for none
};

// One cell on the host runtime, a thread a rank. An error of the engine ends the program of its
// rank and no other: misuse has to be refused on every rank by itself, at the same call.
CellRun run_ranks(const TrainScenario& scenario, const TrainCell& cell,
                  const CellRunOptions& options);

std::string text_of(const std::exception_ptr& error);
std::optional<EngineErrorId> engine_error_of(const std::exception_ptr& error);
bool is_configuration_error(const std::exception_ptr& error);

}  // namespace zeroproof::train

#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "props/train/decoder_cell.h"
#include "zeroproof/engine/full_tensor.h"
#include "zeroproof/engine/runtime/runtime.h"

namespace zeroproof::train {

class ModelRecorder;

// The results of one rank of a run.
struct DecoderRank {
  std::vector<double> losses;               // of its own batches, by forward
  std::vector<FullTensor> parameters;       // whole masters at the end, where collected
  std::vector<std::int64_t> iterations_ns;  // of the steps after the warm-up, where timed
  MemoryStats memory;
  std::exception_ptr error;  // null: its program came to its end
};

// False for a rank of another process.
inline bool has_run(const DecoderRank& rank) {
  return !rank.losses.empty();
}

struct DecoderRunOptions {
  bool collects_parameters = false;
  // The host waits for the device before and after the steps that are timed, not between them.
  bool is_timed = false;
  std::int64_t warmup_steps = 0;
  // By rank, null for none; or empty. They must outlive the run.
  std::vector<ModelRecorder*> recorders = {};
};

// The loop of one rank: forward, engine.backward, engine.step, as often as a step accumulates. The
// loss stays on the device until all steps are done. Throws what the engine throws.
void run_decoder_rank(const DecoderCell& cell, Runtime& runtime, const DecoderRunOptions& options,
                      DecoderRank& result);

// On any world that runs a program once a rank: HostWorld, or what has its try_run(). Of a world
// that spans processes, the ranks of others stay empty.
template <class World>
std::vector<DecoderRank> run_decoder(World& world, const DecoderCell& cell,
                                     const DecoderRunOptions& options) {
  std::vector<DecoderRank> ranks(static_cast<std::size_t>(cell.world_size));
  const auto errors = world.try_run([&](Runtime& runtime) {
    run_decoder_rank(cell, runtime, options, ranks[static_cast<std::size_t>(runtime.rank())]);
  });
  for (std::size_t rank = 0; rank < errors.size(); ++rank) ranks[rank].error = errors[rank];
  return ranks;
}

}  // namespace zeroproof::train

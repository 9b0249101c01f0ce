#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "model/nn/decoder.h"
#include "props/train/train_cell.h"
#include "zeroproof/engine/quirks.h"
#include "zeroproof/engine/runtime/cuda/cuda_world.h"
#include "zeroproof/engine/zero_config.h"
#include "zeroproof/model/result.h"

namespace zeroproof::train {

// A plain training loop on a decoder: what is trained, by which engine, on which data. Plain data.
struct DecoderCell {
  std::string model = "tiny";
  nn::DecoderSizes sizes = nn::DecoderSizes::tiny();
  int stage = 2;
  int world_size = 2;
  Precision precision = Precision::float32;  // or bf16
  std::int64_t batch = 2;                    // sequences of a rank and forward
  std::int64_t length = 16;                  // tokens of a sequence
  std::int64_t steps = 3;                    // of the optimizer
  std::uint64_t seed = 7;                    // of weights and data
  std::string policy = "exact";
  Quirks quirks = {};
  std::optional<Gpus> gpus = std::nullopt;  // one for each rank; none: the host's threads
  CudaCollectives collectives = CudaCollectives::copies;  // between them
  bool uses_cudnn = true;                                 // on them, for attention
  std::shared_ptr<Job> job = nullptr;  // whose processes the ranks are; null: threads
  std::int64_t timeout_ms = 60'000;    // of a rank that waits for others
  // On them: steps after the first kEagerSteps replay a captured one.
  bool uses_cuda_graph = false;
  // In place of the built-in one; stage and precision are set on top.
  std::optional<ZeroConfig> config = std::nullopt;
};

// After so many steps all first-use state exists, and stage 3 has learnt from an iteration.
inline constexpr std::int64_t kEagerSteps = 3;

Result<nn::DecoderSizes> decoder_sizes_of(std::string_view model);

// AdamW of the performance anchors; buckets that a model's gradients fill several times.
ZeroConfig config_of(const DecoderCell& cell);

// Of the sequences of all ranks of a forward: rank r has those from r * batch on.
struct SequenceRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

// Four fixed batches that take turns.
inline constexpr std::int64_t kBatchTurns = 4;

// {ids, targets} of [sequences, length] for a forward, which counts from 0: uniform random numbers
// that do not depend on the ranks.
TensorList batch_of(const DecoderCell& cell, std::int64_t forward, SequenceRange sequences);

// The flags of `zeroproof train` that lead to this cell.
std::string flags_of(const DecoderCell& cell);

}  // namespace zeroproof::train

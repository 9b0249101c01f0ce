#include "props/train/decoder_memory.h"

#include "zeroproof/internal/engine/runtime/copy_staging_bytes.h"

namespace zeroproof::train {
namespace {

constexpr std::int64_t kFloat = 4;

std::int64_t states_of(const DecoderCell& cell, std::int64_t item) {
  constexpr std::int64_t kOptimizer = 3 * kFloat;  // master, both moments
  std::int64_t values = 0;
  for (const nn::ParameterShape& shape : nn::parameter_shapes(cell.sizes))
    values += numel(shape.sizes);
  const std::int64_t ranks = cell.world_size;
  const std::int64_t share = (values + ranks - 1) / ranks;
  const std::int64_t weights = cell.stage == 3 ? share : values;
  const std::int64_t gradients = cell.stage >= 2 ? share : values;
  const std::int64_t optimizer = cell.stage >= 1 ? share : values;
  return item * (weights + gradients) + kOptimizer * optimizer;
}

std::int64_t activations_of(const DecoderCell& cell, std::int64_t item) {
  const nn::DecoderSizes& sizes = cell.sizes;
  constexpr std::int64_t kWidths = 2 + 2 + 3 + 1;  // sums, norms, qkv, attention
  const std::int64_t layer =
      item * (kWidths * sizes.width + 2 * sizes.hidden) + kFloat * (2 + sizes.heads);
  const std::int64_t head = item * (2 * sizes.width + sizes.vocabulary) + kFloat;
  return cell.batch * cell.length * (sizes.layers * layer + head);
}

std::int64_t staging_of(const DecoderCell& cell, std::int64_t item) {
  const bool is_copied = cell.gpus && cell.world_size > 1 &&
                         cell.collectives == CudaCollectives::copies &&
                         cell.gpus->reach_each_other();
  const std::int64_t slice = item * config_of(cell).reduce_bucket_size / cell.world_size;
  return is_copied && slice >= kCopiedSliceBytesMin ? kCopyStagingBytes : 0;
}

}  // namespace

DecoderMemory memory_of(const DecoderCell& cell) {
  const std::int64_t item = item_bytes(model_dtype(cell.precision));
  return {.states = states_of(cell, item),
          .activations = activations_of(cell, item),
          .staging = staging_of(cell, item)};
}

}  // namespace zeroproof::train

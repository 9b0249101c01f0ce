#include "props/train/decoder_cell.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <vector>

#include "model/nearest_name.h"
#include "zeroproof/internal/model/philox.h"

namespace zeroproof::train {
namespace {

constexpr std::array<std::string_view, 2> kModels = {"tiny", "m267"};

std::int64_t values_of(const nn::DecoderSizes& sizes) {
  std::int64_t values = 0;
  for (const nn::ParameterShape& shape : nn::parameter_shapes(sizes)) values += numel(shape.sizes);
  return values;
}

// 41 MB of bf16 gradients for M267; a multiple of what NCCL wants buffers aligned to.
constexpr std::int64_t kBuckets = 13;
constexpr std::int64_t kBucketUnit = 1024;

std::int64_t bucket_size(const DecoderCell& cell) {
  return (values_of(cell.sizes) / kBuckets + kBucketUnit) / kBucketUnit * kBucketUnit;
}

ZeroConfig built_in_config(const DecoderCell& cell) {
  ZeroConfig config;
  const std::int64_t bucket = bucket_size(cell);
  config.reduce_bucket_size = bucket;
  config.allgather_bucket_size = bucket;
  config.stage3_prefetch_bucket_size = bucket;
  config.stage3_param_persistence_threshold = cell.sizes.width;  // the norms
  // Without bounds all of the model is whole between a forward and its backward: gathering ahead
  // has no other, and what is used again sooner than the distance says is not released. What the
  // distance keeps has to leave room for gathering ahead.
  config.stage3_max_live_parameters = values_of(cell.sizes) / 2;
  config.stage3_max_reuse_distance = values_of(cell.sizes) * 5 / 8;
  config.overlap_comm = true;                      // upstream's own default is stage 3 alone
  config.use_multi_rank_bucket_allreduce = false;  // each slice to its owner: half the bytes
  config.gradient_clipping = 0.0;
  config.bf16.check_grad_overflow = false;  // as those that it is measured beside
  config.optimizer.type = OptimizerType::adamw;
  config.optimizer.adam = {.lr = 1e-4,
                           .beta1 = 0.9,
                           .beta2 = 0.95,
                           .eps = 1e-8,
                           .weight_decay = 0.1,
                           .is_decay_decoupled = true};
  return config;
}

// Number i is that of thread i in one launch of the generator.
Tensor uniform_numbers(const Philox& generator, const DecoderCell& cell, SequenceRange sequences) {
  const auto first = static_cast<std::uint64_t>(sequences.begin * cell.length);
  const auto classes = static_cast<double>(cell.sizes.vocabulary);
  std::vector<double> numbers(static_cast<std::size_t>(sequences.count * cell.length));
  for (std::size_t i = 0; i < numbers.size(); ++i)  // of (0, 1]
    numbers[i] = std::ceil(generator.uniforms_of(first + i)[0] * classes) - 1.0;
  return Tensor::of(numbers, {sequences.count, cell.length}, DType::float32);
}

}  // namespace

Result<nn::DecoderSizes> decoder_sizes_of(std::string_view model) {
  if (model == kModels[0]) return nn::DecoderSizes::tiny();
  if (model == kModels[1]) return nn::DecoderSizes::m267();
  return fail(ErrorCode::usage,
              fmt::format("unknown model '{}': {}", model, did_you_mean(model, kModels)));
}

ZeroConfig config_of(const DecoderCell& cell) {
  ZeroConfig config = cell.config.value_or(built_in_config(cell));
  config.stage = cell.stage;
  config.bf16.enabled = cell.precision == Precision::bf16;
  config.train_micro_batch_size_per_gpu = cell.batch;
  return config;
}

// Launches after those of the weights, of which a decoder has one a tensor.
TensorList batch_of(const DecoderCell& cell, std::int64_t forward, SequenceRange sequences) {
  constexpr std::uint64_t kFirstLaunch = 1U << 20;
  const auto turn = static_cast<std::uint64_t>(forward % kBatchTurns);
  TensorList batch;
  for (std::uint64_t part = 0; part < 2; ++part)
    batch.push_back(uniform_numbers(
        {.seed = cell.seed, .offset = 4 * (kFirstLaunch + 2 * turn + part)}, cell, sequences));
  return batch;
}

std::string flags_of(const DecoderCell& cell) {
  std::string flags = fmt::format(
      "--model {} --stage {} --world-size {} --dtype {} --batch {} --length {} --steps {}",
      cell.model, cell.stage, cell.world_size, precision_name(cell.precision), cell.batch,
      cell.length, cell.steps);
  const auto known = decoder_sizes_of(cell.model);
  if (known && known->layers != cell.sizes.layers)
    flags += fmt::format(" --layers {}", cell.sizes.layers);
  if (cell.gpus) flags += " --runtime cuda";
  if (cell.gpus && cell.collectives == CudaCollectives::nccl) flags += " --collectives nccl";
  if (cell.uses_cuda_graph) flags += " --cuda-graph";
  if (!cell.uses_cudnn) flags += " --attention own";
  if (cell.policy != "exact") flags += " --policy " + cell.policy;
  if (!cell.quirks.is_empty()) flags += " --quirks " + cell.quirks.text();
  return flags;
}

}  // namespace zeroproof::train

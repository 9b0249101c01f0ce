#include "props/reference/rest.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/reference/flat_layout.h"

namespace zeroproof::reference {
namespace {

constexpr std::int64_t kMomentBytes = 4;

// Casts of autocast, narrow states and a wire of another dtype have memory of their own.
bool has_one_dtype(const ZeroConfig& config) {
  return !config.torch_autocast.enabled && !config.fp16.master_weights_and_grads &&
         !config.bf16.master_weights_and_grads && !config.bf16.optimizer_states &&
         config.accumulation_dtype() == config.model_dtype() &&
         config.communication_dtype() == config.model_dtype();
}

// Of one trained element: its place in the window, its master weight, its moments.
std::int64_t state_bytes(const ZeroConfig& config) {
  if (config.is_offloaded()) return 0;
  const bool is_sgd = config.optimizer.type == OptimizerType::sgd;
  const std::int64_t moments = !is_sgd ? 2 : (config.optimizer.sgd.momentum != 0.0 ? 1 : 0);
  return item_bytes(config.accumulation_dtype()) + item_bytes(config.master_dtype()) +
         kMomentBytes * moments;
}

std::int64_t bucket_bytes(const World& world) {
  const ZeroConfig& config = world.config;
  if (config.stage == 0 || !config.contiguous_gradients) return 0;
  const std::int64_t elements = std::min(config.reduce_bucket_size, world.trained_elements() + 1);
  const std::int64_t buffers = config.has_overlap_comm() ? 2 : 1;
  return buffers * elements * item_bytes(config.model_dtype());
}

std::int64_t flat_bytes(const World& world) {
  const ZeroConfig& config = world.config;
  const int ranks = config.stage == 0 ? 1 : world.ranks;
  std::int64_t bytes = bucket_bytes(world);
  for (int group = 0; group < world.groups(); ++group) {
    const FlatLayout layout(world, group, ranks);
    bytes +=
        layout.padded() * item_bytes(config.model_dtype()) + layout.slice() * state_bytes(config);
  }
  return bytes;
}

std::int64_t partitioned_bytes(const World& world) {
  const ZeroConfig& config = world.config;
  const std::int64_t item = item_bytes(config.model_dtype());
  const std::int64_t weight = config.offload_param == OffloadDevice::cpu ? 0 : item;
  std::int64_t bytes = 0;
  for (const Parameter& parameter : world.parameters) {
    const std::int64_t slice = (parameter.elements + world.ranks - 1) / world.ranks;
    bytes += slice * (weight + (parameter.is_trained ? state_bytes(config) : 0));
    if (parameter.is_persistent) bytes += slice * world.ranks * item;
  }
  return bytes;
}

}  // namespace

std::optional<std::int64_t> bytes_at_rest(const World& world) {
  if (!has_one_dtype(world.config) || !world.is_ours()) return std::nullopt;
  return world.config.stage == 3 ? partitioned_bytes(world) : flat_bytes(world);
}

void judge_rest(const std::vector<World>& worlds, std::int64_t live_bytes, Ledger& ledger) {
  std::int64_t most = 0;
  for (const World& world : worlds) {
    const auto of_engine = bytes_at_rest(world);
    if (!of_engine) return;
    most += *of_engine;
  }
  ledger.judge(Rule::rest_bytes, live_bytes <= most, 0, [&] {
    return fmt::format("{} bytes are live between two windows; weights, states and buckets have {}",
                       live_bytes, most);
  });
}

}  // namespace zeroproof::reference

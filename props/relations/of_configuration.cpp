// Relations whose other program has another configuration.
#include <algorithm>
#include <utility>

#include "props/interpreter/data_plan.h"
#include "props/interpreter/program_count.h"
#include "props/relations/relation_table.h"
#include "props/relations/rewrite.h"

namespace zeroproof::relations {
namespace {

using program::Block;
using program::CallModule;
using program::EngineSpec;
using program::Experts;
using program::Load;
using program::Program;
using program::SetLearningRate;
using program::Statement;

constexpr int kThird = 3;
constexpr std::int64_t kLarge = 500'000'000;
constexpr std::int64_t kSmallBucket = 3;
constexpr std::int64_t kSmallGather = 4;
constexpr std::int64_t kSmallUnit = 2;
constexpr std::int64_t kFew = 6;
constexpr std::int64_t kMany = 1000;

// The large one in place of a small one, and the other way round.
std::int64_t other_size(std::int64_t size, std::int64_t small, std::int64_t large) {
  return size >= large ? small : large;
}

// Half precision rounds the contributions of a mean over three, and stages sum in different dtypes.
bool has_rounded_mean(const Program& program) {
  return item_bytes(program.config.model_dtype()) == 2 && program::odd_divisor(program) != 1;
}

std::optional<Other> if_valid(Other other) {
  if (!validate(other.program.config)) return std::nullopt;
  return other;
}

}  // namespace

std::optional<Other> with_other_buckets(const Program& program) {
  if (program.config.stage == 0) return std::nullopt;
  Other other{program};
  ZeroConfig& config = other.program.config;
  config.reduce_bucket_size = other_size(config.reduce_bucket_size, kSmallBucket, kLarge);
  config.allgather_bucket_size = other_size(config.allgather_bucket_size, kSmallGather, kLarge);
  return if_valid(std::move(other));
}

// A load of weights that a context holds changes those that stay whole, and the context sees it.
std::optional<Other> with_other_fetches(const Program& program) {
  const bool loads_in_context = any_statement(program.body, [](const Statement& it) {
    const auto* const block = std::get_if<Block>(&it.kind);
    return block && block->kind == Block::Kind::gathered &&
           std::ranges::any_of(block->body, [](const Statement& inner) {
             return std::holds_alternative<Load>(inner.kind);
           });
  });
  if (program.config.stage != kThird || loads_in_context) return std::nullopt;
  Other other{program};
  ZeroConfig& config = other.program.config;
  config.stage3_prefetch_bucket_size = other_size(config.stage3_prefetch_bucket_size, 0, kMany);
  config.stage3_max_live_parameters =
      other_size(config.stage3_max_live_parameters, kSmallGather, kLarge);
  config.stage3_max_reuse_distance = other_size(config.stage3_max_reuse_distance, 0, kMany);
  config.stage3_param_persistence_threshold =
      other_size(config.stage3_param_persistence_threshold, 0, kFew);
  return if_valid(std::move(other));
}

std::optional<Other> with_other_units(const Program& program) {
  if (program.config.stage != kThird) return std::nullopt;
  Other other{program};
  ZeroConfig& config = other.program.config;
  config.sub_group_size = other_size(config.sub_group_size, kSmallUnit, kLarge);
  return if_valid(std::move(other));
}

std::optional<Other> with_other_reductions(const Program& program) {
  if (program.config.stage == 0) return std::nullopt;
  Other other{program};
  ZeroConfig& config = other.program.config;
  config.overlap_comm = !config.has_overlap_comm();
  config.contiguous_gradients = !config.contiguous_gradients;
  if (config.stage == 2) config.reduce_scatter = !config.reduce_scatter;
  config.use_multi_rank_bucket_allreduce = !config.use_multi_rank_bucket_allreduce;
  return if_valid(std::move(other));
}

std::optional<Other> with_other_linear(const Program& program) {
  if (program.config.stage != kThird || !program.data.is_exact()) return std::nullopt;
  Other other{program};
  ZeroConfig& config = other.program.config;
  config.memory_efficient_linear = !config.memory_efficient_linear;
  return if_valid(std::move(other));
}

std::optional<Other> with_other_offload(const Program& program) {
  if (program.config.stage == 0) return std::nullopt;
  Other other{program};
  ZeroConfig& config = other.program.config;
  config.offload_optimizer = config.is_offloaded() ? OffloadDevice::none : OffloadDevice::cpu;
  config.zero_force_ds_cpu_optimizer = false;
  return if_valid(std::move(other));
}

// Without management every step is a boundary.
std::optional<Other> with_other_management(const Program& program) {
  if (!program.config.managed_gradient_accumulation) return std::nullopt;
  auto body = boundaries_alone(program);
  if (!body) return std::nullopt;
  Other other{program};
  other.program.config.managed_gradient_accumulation = false;
  other.program.body = std::move(*body);
  return if_valid(std::move(other));
}

// In stage 3 experts are another one on each rank, and autocast keeps rounded weights. Stages round
// the sums of a window at other places, which gradients at their limits show.
std::optional<Other> in_other_stage(const Program& program) {
  const bool depends = any_module(
      program, [](const program::Module& it) { return std::holds_alternative<Experts>(it.kind); });
  const bool is_at_limit = program.data.mode == program::Data::Mode::magnitude;
  if (depends || is_at_limit || has_rounded_mean(program) ||
      program::has<CallModule>(program.body) || changes_weights(program))
    return std::nullopt;
  constexpr int kStages = 4;
  for (int i = 1; i < kStages; ++i) {
    Other other{program};
    ZeroConfig& config = other.program.config;
    config.stage = (program.config.stage + i) % kStages;
    const bool is_rounded =
        config.torch_autocast.enabled && (config.stage == kThird || program.config.stage == kThird);
    if (!is_rounded && validate(config)) return other;
  }
  return std::nullopt;
}

std::optional<Other> with_other_groups(const Program& program) {
  const bool names_group = any_statement(program.body, [](const Statement& it) {
    const auto* const set = std::get_if<SetLearningRate>(&it.kind);
    return set && set->group;
  });
  if (names_group) return std::nullopt;
  Other other{program};
  for (EngineSpec& engine : other.program.engines)
    engine.parameter_groups = engine.parameter_groups == 1 ? 2 : 1;
  return other;
}

}  // namespace zeroproof::relations

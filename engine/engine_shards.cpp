// Checkpoints in which each rank writes and reads its own shards.
#include <utility>

#include "engine/checkpoint/shard_load.h"
#include "engine/checkpoint_options.h"
#include "engine/engine_core.h"
#include "engine/patient_work.h"

namespace zeroproof {
namespace {

// On the thread of the rank, whose tensors they are.
ShardValues values_on(ZeroContext& context, const SideWork::Side& side) {
  return {.read =
              [&context, &side](const Span& from) {
                std::vector<double> values;
                side.on_rank([&] { values = context.kernels().read(context.compute(), from); });
                return values;
              },
          .write =
              [&context, &side](const Span& to, const std::vector<double>& values) {
                side.on_rank([&] { context.kernels().write(context.compute(), to, values); });
              }};
}

}  // namespace

ShardState Engine::Core::shard_state(TrainingState head) {
  return {.head = std::move(head),
          .shards = optimizer_->state_shards(),
          .steps = optimizer_->step_counts(),
          .data = rank_in(context_.data.group())};
}

Result<void> Engine::Core::save_shards(TrainingState head, const std::string& folder,
                                       const EngineCheckpointOptions& given) {
  const ShardState state = shard_state(std::move(head));
  Result<void> own;
  run_patiently(context_, [&](const SideWork::Side& side) {
    const SaveOptions options{.tag = given.tag,
                              .place = {.tensor = rank_in(context_.tensor.group())},
                              .barrier = side.barrier};
    own =
        zeroproof::save_shards(state, values_on(context_, side), files_of(given), folder, options);
  });
  return all_ranks_succeeded(own);
}

ShardSnapshot Engine::Core::shard_snapshot(TrainingState head, DType dtype) {
  const auto read = [this](const Span& from) {
    return context_.kernels().read(context_.compute(), from);
  };
  return snapshot_of(shard_state(std::move(head)), {.read = read, .write = {}}, dtype);
}

// What a checkpoint says beside its tensors, after all that this rank needs of it was found whole.
Result<ShardLoad> Engine::Core::checked_shards(const std::string& folder,
                                               const EngineCheckpointOptions& given) {
  const std::vector<StateShard> shards = optimizer_->state_shards();
  std::vector<std::vector<std::string>> groups;
  for (const ParameterGroup& group : parameter_groups()) groups.push_back(group.parameters);
  Result<ShardLoad> load;
  run_patiently(context_, [&](const SideWork::Side&) {
    load = ShardLoad::open(files_of(given), folder, given.tag, rank_in(context_.tensor.group()));
    if (!load) return;
    if (auto right = load->check(shards, groups); !right) load = tl::unexpected(right.error());
  });
  return load;
}

Result<void> Engine::Core::apply_shards(const ShardLoad& load) {
  Result<void> own;
  optimizer_->begin_shard_load();
  const std::vector<StateShard> shards = optimizer_->state_shards();
  run_patiently(context_, [&](const SideWork::Side& side) {
    own = load.apply(shards, values_on(context_, side));
  });
  optimizer_->finish_shard_load(load.steps());
  return all_ranks_succeeded(own);
}

}  // namespace zeroproof

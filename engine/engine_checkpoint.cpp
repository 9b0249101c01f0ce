// Checkpoints of an engine: what it gives and takes, and that all ranks agree on the outcome.
#include <algorithm>
#include <utility>

#include "engine/checkpoint/checkpoint_store.h"
#include "engine/checkpoint_options.h"
#include "engine/engine_core.h"
#include "engine/patient_work.h"

namespace zeroproof {
namespace {

// Given ones, and that of all others for those.
std::map<std::string, PartitionRule> rules_of(const ZeroParameters& parameters,
                                              const EngineCheckpointOptions& options) {
  std::map<std::string, PartitionRule> rules = options.partition_rules;
  if (options.other_parameters == PartitionRule()) return rules;
  for (const ZeroParameter& parameter : parameters)
    rules.emplace(parameter.name, options.other_parameters);
  return rules;
}

Result<TrainingState> read_checkpoint(const std::string& folder,
                                      const EngineCheckpointOptions& options,
                                      const LoadOptions& wanted) {
  if (options.store) return options.store->load(folder, wanted);
  return load_checkpoint(files_of(options), folder, wanted);
}

}  // namespace

std::vector<ParameterGroup> Engine::Core::parameter_groups() const {
  std::vector<ParameterGroup> groups;
  for (const ZeroParameter& parameter : context_.parameters) {
    if (parameter.group < 0) continue;
    const auto group = static_cast<std::size_t>(parameter.group);
    if (groups.size() <= group) groups.resize(group + 1);
    groups[group].parameters.push_back(parameter.name);
  }
  return groups;
}

// An error anywhere is one everywhere.
Result<void> Engine::Core::all_ranks_succeeded(Result<void> result) {
  Stream& stream = context_.compute();
  const Tensor failed = context_.runtime.memory().allocate(1, DType::float64);
  context_.kernels().fill(stream, Span::of(failed), result ? 0.0 : 1.0);
  ProcessGroup& ranks = context_.data.group();
  ranks.wait(ranks.all_reduce(stream, Span::of(failed), ReduceOp::sum), stream);
  if (context_.tensor.size() > 1) {
    ProcessGroup& parts = context_.tensor.group();
    parts.wait(parts.all_reduce(stream, Span::of(failed), ReduceOp::sum), stream);
  }
  const double failures = context_.kernels().read(stream, Span::of(failed)).front();
  if (!result || failures == 0.0) return result;
  return fail(ErrorCode::cannot_run, "another rank could not: see its message");
}

// A store is as fast as memory, and for the rank's own thread.
void Engine::Core::run_for_files(const EngineCheckpointOptions& given, const SideWork::Work& work) {
  if (given.store == nullptr)
    run_patiently(context_, work);
  else if (work)
    work({});
}

// What a checkpoint has beside its tensors.
TrainingState Engine::Core::training_head(const EngineCheckpointOptions& given) const {
  TrainingState state{.groups = parameter_groups(),
                      .loss_scaler = context_.loss_scaler.state(),
                      .counters = {.micro_steps = counters_.micro_steps,
                                   .global_steps = counters_.global_steps,
                                   .skipped_steps = counters_.skipped_steps,
                                   .global_samples = counters_.global_samples}};
  learning_rates_.save(state);
  state.partition_rules = rules_of(context_.parameters, given);
  return state;
}

// Values are whole over the data group after the getters, so one rank of it writes for all; each
// tensor-parallel rank has a part of its own.
Result<void> Engine::Core::save_checkpoint(const std::string& folder,
                                           const EngineCheckpointOptions& given) {
  const Events::Call call(context_.events, "engine.save_checkpoint");
  if (auto before = wait_checkpoint(); !before) return before;
  TrainingState state = training_head(given);
  if (given.layout == CheckpointLayout::shards) return save_shards(std::move(state), folder, given);
  const bool is_writer = context_.data.group().rank() == 0;
  state.parameters = optimizer_->full_parameters();
  state.optimizer_state = optimizer_->full_optimizer_state();
  Result<void> own;
  const auto write = [&](const SideWork::Side& side) {
    if (given.store != nullptr) {
      own = given.store->save(std::move(state), folder, given.tag);
      return;
    }
    const SaveOptions options{.tag = given.tag,
                              .place = {.tensor = rank_in(context_.tensor.group())},
                              .barrier = side.barrier};
    own = zeroproof::save_checkpoint(state, files_of(given), folder, options);
  };
  run_for_files(given, is_writer ? SideWork::Work(write) : SideWork::Work());
  return all_ranks_succeeded(own);
}

Result<void> Engine::Core::load_checkpoint(const std::string& folder,
                                           const EngineCheckpointOptions& given) {
  const Events::Call call(context_.events, "engine.load_checkpoint");
  if (auto before = wait_checkpoint(); !before) return before;
  const bool has_shards = given.layout == CheckpointLayout::shards;
  TrainingState own;
  if (!has_shards)
    own = {.parameters = optimizer_->full_parameters(),
           .optimizer_state = optimizer_->full_optimizer_state()};
  LoadOptions wanted{.tag = given.tag, .targets = targets_of(own)};
  wanted.on_warning = given.on_warning;
  const ProcessGroup& tensor = context_.tensor.group();
  if (tensor.size() > 1)
    wanted.tensor_parallel = ParallelRank{.rank = tensor.rank(), .size = tensor.size()};
  for (const ParameterGroup& group : parameter_groups()) wanted.groups.push_back(group.parameters);

  Result<TrainingState> loaded;
  Result<ShardLoad> shards;
  const auto read = [&](const SideWork::Side&) { loaded = read_checkpoint(folder, given, wanted); };
  if (!has_shards) {
    run_for_files(given, read);
  } else {
    shards = checked_shards(folder, given);
    loaded = shards.map([](const ShardLoad& load) { return load.head(); });
  }
  if (loaded && given.restores_scheduler)
    if (auto fits = learning_rates_.check(*loaded, folder); !fits)
      loaded = tl::unexpected(fits.error());
  Result<void> outcome =
      all_ranks_succeeded(loaded ? Result<void>{} : Result<void>(tl::unexpected(loaded.error())));
  if (!outcome) return outcome;
  zero_grad();
  if (!has_shards)
    optimizer_->load(loaded->parameters, loaded->optimizer_state);
  else if (auto applied = apply_shards(*shards); !applied)
    return applied;
  learning_rates_.restore(*loaded, given.restores_scheduler);
  optimizer_->set_rates(learning_rates_.groups());
  context_.loss_scaler.restore(loaded->loss_scaler);
  counters_ = {.micro_steps = loaded->counters.micro_steps,
               .global_steps = loaded->counters.global_steps,
               .skipped_steps = loaded->counters.skipped_steps,
               .global_samples = loaded->counters.global_samples,
               .backwards = 0};
  context_.events.set_steps(counters_.micro_steps, counters_.global_steps);
  return {};
}

}  // namespace zeroproof

// Checkpoints of an engine: what it gives and takes, and that all ranks agree on the outcome.
#include <algorithm>
#include <utility>

#include "engine/checkpoint/checkpoint_store.h"
#include "engine/engine_core.h"
#include "engine/files/posix_file_system.h"

namespace zeroproof {
namespace {

FileSystem& files_of(const EngineCheckpointOptions& options) {
  return options.files ? *options.files : posix_file_system();
}

Result<void> keep(TrainingState state, const std::string& folder,
                  const EngineCheckpointOptions& options, Departure planted) {
  if (options.store) return options.store->save(std::move(state), folder, options.tag);
  return save_checkpoint(state, files_of(options), folder,
                         {.tag = options.tag, .planted = planted});
}

Result<TrainingState> kept(const std::string& folder, const EngineCheckpointOptions& options,
                           const LoadOptions& wanted) {
  if (options.store) return options.store->load(folder, wanted);
  return load_checkpoint(files_of(options), folder, wanted);
}

}  // namespace

std::vector<ParameterGroup> Engine::Core::parameter_groups() const {
  std::vector<ParameterGroup> groups;
  for (const ZeroParameter& parameter : context.parameters) {
    if (parameter.group < 0) continue;
    const auto group = static_cast<std::size_t>(parameter.group);
    if (groups.size() <= group) groups.resize(group + 1);
    groups[group].parameters.push_back(parameter.name);
  }
  return groups;
}

// An error anywhere is one everywhere.
Result<void> Engine::Core::agreed(Result<void> result) {
  if (context.departs("W15"_bug) && !result) return result;
  Stream& stream = context.compute();
  const Tensor failed = context.runtime.memory().allocate(1, DType::float64);
  context.kernels().fill(stream, Span::of(failed), result ? 0.0 : 1.0);
  ProcessGroup& ranks = context.data.group();
  ranks.wait(ranks.all_reduce(stream, Span::of(failed), ReduceOp::sum), stream);
  const double failures = context.kernels().read(stream, Span::of(failed)).front();
  if (!result || failures == 0.0) return result;
  return fail(ErrorCode::cannot_run, "another rank could not: see its message");
}

// Values are whole after the getters, so one rank writes for all.
Result<void> Engine::Core::save_checkpoint(const std::string& folder,
                                           const EngineCheckpointOptions& given) {
  const Events::Call call(context.events, "engine.save_checkpoint");
  const bool is_writer = context.data.group().rank() == 0;
  if (context.departs("R45"_bug)) optimizer->begin_capture();      // masters are all that is saved
  const bool collects = is_writer || !context.departs("S40"_bug);  // nobody else writes them
  using Tensors = std::vector<FullTensor>;
  TrainingState state{.parameters = collects ? optimizer->full_parameters() : Tensors(),
                      .optimizer_state = collects ? optimizer->full_optimizer_state() : Tensors(),
                      .groups = parameter_groups(),
                      .loss_scaler = context.loss_scaler.state(),
                      .counters = {.micro_steps = counters.micro_steps,
                                   .global_steps = counters.global_steps,
                                   .skipped_steps = counters.skipped_steps,
                                   .global_samples = counters.global_samples}};
  learning_rates.save(state);
  if (context.departs("R25"_bug))  // Adam's, whatever the optimizer is
    for (ParameterGroup& group : state.groups)
      group.hyper_parameters["lr"] = config.optimizer.adam.lr;
  if (context.departs("T35"_bug))  // a window that has begun is not kept
    state.counters.micro_steps -= counters.micro_steps % config.gradient_accumulation_steps;
  if (context.departs("T73"_bug))  // as the module has them
    for (FullTensor& tensor : state.parameters)
      for (double& value : tensor.values) value = round_to(config.model_dtype(), value);
  if (context.departs("S44"_bug))  // what the optimizer has
    std::erase_if(state.parameters, [this](const FullTensor& tensor) {
      const auto at = std::ranges::find(context.parameters, tensor.name, &ZeroParameter::name);
      return at != context.parameters.end() && at->group < 0;
    });
  if (context.departs("R20"_bug))  // the engine's steps, the skipped ones too
    for (FullTensor& tensor : state.optimizer_state)
      if (tensor.name.ends_with("/step"))
        tensor.values.assign(1, static_cast<double>(counters.global_steps));
  if (context.departs("S12"_bug)) optimizer->zero_grad();  // one saves between windows: gives room
  Result<void> own;
  if (is_writer) own = keep(std::move(state), folder, given, context.departure);
  return context.departs("Z52"_bug) ? own : agreed(own);
}

Result<void> Engine::Core::load_checkpoint(const std::string& folder,
                                           const EngineCheckpointOptions& given) {
  const Events::Call call(context.events, "engine.load_checkpoint");
  const TrainingState own{.parameters = optimizer->full_parameters(),
                          .optimizer_state = optimizer->full_optimizer_state()};
  LoadOptions wanted{.tag = given.tag, .targets = targets_of(own)};
  wanted.on_warning = given.on_warning;
  wanted.planted = context.departure;
  if (context.departs("T38"_bug) && given.store == nullptr) wanted.tag = {};  // as files default to
  const ProcessGroup& tensor = context.tensor.group();
  if (tensor.size() > 1 || context.departs("Q13"_bug))  // a group of one is a group
    wanted.tensor_parallel = ParallelRank{.rank = tensor.rank(), .size = tensor.size()};
  if (context.departs("T03"_bug)) zero_grad();  // makes room for what is read
  for (const ParameterGroup& group : parameter_groups()) wanted.groups.push_back(group.parameters);

  auto loaded = kept(folder, given, wanted);
  if (loaded && given.restores_scheduler)
    if (auto fits = learning_rates.check(*loaded, folder); !fits)
      loaded = tl::unexpected(fits.error());
  if (context.departs("T52"_bug) && loaded) context.loss_scaler.restore(loaded->loss_scaler);
  const Result<void> outcome =
      agreed(loaded ? Result<void>{} : Result<void>(tl::unexpected(loaded.error())));
  if (!outcome) return outcome;
  if (context.departs("V26"_bug))  // cast like every other state, to what the module has
    for (FullTensor& state : loaded->optimizer_state)
      if (state.name.ends_with("/step"))
        state.values.front() = round_to(config.model_dtype(), state.values.front());
  if (context.departs("R83"_bug))
    optimizer->zero_grad();  // which has the gradients
  else if (!context.departs("V20"_bug))
    zero_grad();  // of a window that was never trained
  optimizer->load(loaded->parameters, loaded->optimizer_state);
  learning_rates.restore(*loaded, given.restores_scheduler);
  optimizer->set_rates(learning_rates.groups());
  if (context.departs("W04"_bug)) loaded->loss_scaler.hysteresis = config.fp16.hysteresis;
  context.loss_scaler.restore(loaded->loss_scaler);
  const bool is_own = context.departs("R60"_bug);  // where this engine is in its window
  counters = {.micro_steps = is_own ? counters.micro_steps : loaded->counters.micro_steps,
              .global_steps = context.departs("T86"_bug) ? counters.global_steps
                                                         : loaded->counters.global_steps,
              .skipped_steps = context.departs("T74"_bug) ? counters.skipped_steps
                                                          : loaded->counters.skipped_steps,
              .global_samples = loaded->counters.global_samples,
              .backwards = context.departs("X04"_bug) ? counters.backwards : 0};
  if (context.departs("Z63"_bug))  // as if these ranks had taken all of its steps
    counters.global_samples = counters.global_steps * config.train_micro_batch_size_per_gpu *
                              config.gradient_accumulation_steps * context.data.size();
  if (context.departs("R52"_bug)) boundary_override_.reset();  // its counters tell the boundary
  context.events.set_steps(counters.micro_steps, counters.global_steps);
  return {};
}

}  // namespace zeroproof

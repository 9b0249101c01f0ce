// Checkpoints that are written while training goes on.
#include <utility>

#include "engine/checkpoint_options.h"
#include "engine/engine_core.h"
#include "engine/patient_work.h"

namespace zeroproof {

// What is saved is copied here, and the threads begin once all ranks have their copies and a
// folder to write to.
Result<void> Engine::Core::async_save_checkpoint(const std::string& folder,
                                                 const EngineCheckpointOptions& given) {
  if (given.store != nullptr) return save_checkpoint(folder, given);
  if (auto before = wait_checkpoint(); !before) return before;
  const Events::Call call(context_.events, "engine.async_save_checkpoint");
  auto save = begin_save(training_head(given), folder, given);
  if (auto begun = all_ranks_succeeded(save ? save->begun() : Result<void>{}); !begun) return begun;
  if (save) save->start();
  pending_save_ = std::move(save);
  is_saving_ = true;
  return {};
}

// This rank's part, if it writes one. The disk is asked beside meetings, tensors are not.
std::unique_ptr<PendingSave> Engine::Core::begin_save(TrainingState state,
                                                      const std::string& folder,
                                                      const EngineCheckpointOptions& given) {
  SaveOptions options{.tag = given.tag, .place = {.tensor = rank_in(context_.tensor.group())}};
  std::unique_ptr<PendingSave> save;
  if (given.layout == CheckpointLayout::shards) {
    ShardSnapshot snapshot = shard_snapshot(std::move(state), options.dtype);
    run_patiently(context_, [&](const SideWork::Side& side) {
      options.barrier = side.barrier;
      save = begin_shards(std::move(snapshot), files_of(given), folder, options);
    });
    return save;
  }
  state.parameters = optimizer_->full_parameters();
  state.optimizer_state = optimizer_->full_optimizer_state();
  const auto begin = [&](const SideWork::Side& side) {
    options.barrier = side.barrier;
    save = begin_checkpoint(std::move(state), files_of(given), folder, options);
  };
  const bool is_writer = context_.data.group().rank() == 0;
  run_patiently(context_, is_writer ? SideWork::Work(begin) : SideWork::Work());
  return save;
}

Result<void> Engine::Core::wait_checkpoint() {
  if (!is_saving_) return {};
  Result<void> own;
  const auto finish = [&](const SideWork::Side& side) {
    own = pending_save_->finish(side.barrier);
  };
  run_patiently(context_, pending_save_ ? SideWork::Work(finish) : SideWork::Work());
  pending_save_.reset();
  is_saving_ = false;
  return all_ranks_succeeded(own);
}

}  // namespace zeroproof

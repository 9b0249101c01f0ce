#include "props/train/fault_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/runtime/host/rendezvous.h"
#include "model/check.h"
#include "props/train/fault_run.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::train {
namespace {

std::string folder_of_engine(std::size_t engine) {
  return fmt::format("/checkpoints/engine{}", engine);
}

EngineCheckpointOptions tagged(std::int64_t window, FaultProgress& progress) {
  return {.tag = fmt::format("window{}", window), .store = &progress.checkpoints};
}

}  // namespace

std::int64_t resumable_window(const TrainScenario& scenario, std::int64_t saved) {
  const bool has_more = std::ranges::count(scenario.models, ModelKind::raising) > 0;
  return has_more ? std::min<std::int64_t>(saved, 0) : saved;
}

FaultRank::FaultRank(const TrainScenario& scenario, const TrainCell& cell, Runtime& runtime,
                     sim::PlannedFaults& faults, FaultProgress& progress)
    : scenario_(scenario), cell_(cell), runtime_(runtime), faults_(faults), progress_(progress) {
  make_engines();
}

void FaultRank::make_engines() {
  target_ = std::make_unique<FaultTarget>(scenario_, cell_, runtime_, faults_);
}

void FaultRank::run(RankRun& run) {
  const bool is_fresh = progress_.saved < 0;
  std::int64_t window = is_fresh ? 0 : resumable_window(scenario_, progress_.saved);
  if (!is_fresh) load(window);
  run.windows.resize(static_cast<std::size_t>(window));
  while (window < cell_.steps) {
    if (window < fault_windows(cell_.steps)) save(window);
    Ending ending = try_window(window);
    while (ending != Ending::done) {
      if (runtime_.rank() == 0) ++progress_.redone;
      if (!target_->has_engines()) {
        remake_engines();
        window = resumable_window(scenario_, window);
        run.windows.resize(static_cast<std::size_t>(window));
      }
      if (ending == Ending::restore) load(window);
      faults_.recover(runtime_.rank());
      ending = try_window(window);
    }
    run.windows.push_back(std::move(values_));
    ++window;
  }
  run.loss_scale = target_->engine(0).loss_scale();
}

FaultRank::Ending FaultRank::try_window(std::int64_t window) {
  const int rank = runtime_.rank();
  note_counters();
  faults_.begin_window(rank, static_cast<std::uint64_t>(window));
  const sim::Fault* const fault = faults_.due(rank);
  const bool is_caught = fault && fault->rank < 0;
  Ending ending = Ending::done;
  try {
    Pass pass(scenario_, cell_, *target_, window);
    scenario_.window(pass);
    ending = judge_window(target_->take_values());
  } catch (const EnginesGone&) {
    ending = Ending::restore;
  } catch (const host::GroupAborted&) {
    throw;
  } catch (const sim::InjectedFault&) {
    if (!is_caught) throw;
    ending = judge_failure();
  } catch (const RuntimeFault&) {
    if (!is_caught) throw;
    ending = judge_failure();
  }
  faults_.end_window(rank);
  if (!fault) return ending;
  if (!target_->has_engines()) return agreed(Ending::restore);
  return agreed(ending);
}

// A rank that does not know how far a step came starts from the checkpoint.
FaultRank::Ending FaultRank::judge_failure() const {
  return is_untouched() ? Ending::redo : Ending::restore;
}

// Of a window that came to its end: whether all its steps were taken.
FaultRank::Ending FaultRank::judge_window(const WindowValues& values) {
  values_ = values;
  const sim::Fault* const fault = faults_.due(runtime_.rank());
  if (!fault) return Ending::done;
  if (!target_->has_engines()) return Ending::restore;
  const bool has_skipped = values.outcomes.size() < scenario_.engines();
  if (fault->kind == sim::FaultKind::skipped_step && has_skipped) return judge_failure();
  if (fault->kind != sim::FaultKind::overflow) return Ending::done;
  const auto overflows = std::ranges::count_if(values.outcomes, &StepOutcome::has_overflow);
  if (overflows == 0) return Ending::done;
  return std::cmp_equal(overflows, values.outcomes.size()) ? Ending::redo : Ending::restore;
}

FaultRank::Ending FaultRank::agreed(Ending own) {
  Stream& stream = runtime_.stream(StreamRole::compute);
  const Tensor worst = runtime_.memory().allocate(1, DType::float64);
  runtime_.kernels().fill(stream, Span::of(worst), static_cast<double>(own));
  ProcessGroup& ranks = runtime_.group(GroupKind::data);
  if (ranks.size() > 1)
    ranks.wait(ranks.all_reduce(stream, Span::of(worst), ReduceOp::max), stream);
  const double agreed = runtime_.kernels().read(stream, Span::of(worst)).front();
  const auto ending = static_cast<Ending>(static_cast<std::uint8_t>(agreed));
  if (ending != Ending::done && target_->has_engines()) zero_grad();
  if (ending != Ending::done) target_->take_values();
  return ending;
}

void FaultRank::save(std::int64_t window) {
  for (std::size_t engine = 0; engine < scenario_.engines(); ++engine) {
    const auto saved = target_->engine(engine).save_checkpoint(folder_of_engine(engine),
                                                               tagged(window, progress_));
    if (!saved) throw std::runtime_error(saved.error().text);
  }
  progress_.saved = window;
}

void FaultRank::load(std::int64_t window) {
  if (runtime_.rank() == 0) ++progress_.restored;
  for (std::size_t engine = 0; engine < scenario_.engines(); ++engine) {
    const auto loaded = target_->engine(engine).load_checkpoint(folder_of_engine(engine),
                                                                tagged(window, progress_));
    if (!loaded) throw std::runtime_error(loaded.error().text);
  }
}

// No memory of the destroyed engines may stay.
void FaultRank::remake_engines() {
  target_.reset();
  if (live_bytes() != 0)
    throw std::runtime_error(
        fmt::format("{} bytes are still allocated after all engines were destroyed", live_bytes()));
  make_engines();
}

void FaultRank::zero_grad() {
  for (std::size_t engine = 0; engine < scenario_.engines(); ++engine)
    target_->engine(engine).zero_grad();
}

void FaultRank::note_counters() {
  target_->forget_step();
  micro_steps_.clear();
  global_steps_.clear();
  for (std::size_t engine = 0; engine < scenario_.engines(); ++engine) {
    micro_steps_.push_back(target_->engine(engine).micro_steps());
    global_steps_.push_back(target_->engine(engine).global_steps());
  }
}

bool FaultRank::is_untouched() const {
  if (target_->is_in_step()) return false;
  for (std::size_t engine = 0; engine < scenario_.engines(); ++engine) {
    const Engine& it = target_->engine(engine);
    if (it.micro_steps() != micro_steps_[engine] || it.global_steps() != global_steps_[engine])
      return false;
  }
  return true;
}

// What queued work still keeps is not lost.
std::int64_t FaultRank::live_bytes() const {
  runtime_.stream(StreamRole::compute).synchronize();
  return runtime_.memory().stats(Placement::device).live_bytes +
         runtime_.memory().stats(Placement::host).live_bytes;
}

}  // namespace zeroproof::train

// What programs do with the checkpoints of an engine target.
#include <algorithm>
#include <stdexcept>

#include "engine/checkpoint/checkpoint.h"
#include "props/interpreter/checkpoint_damage.h"
#include "props/interpreter/checkpoint_state.h"
#include "props/interpreter/engine_target.h"
#include "props/interpreter/observe.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof::program {
namespace {

constexpr const char* kMisfit = "misfit";
constexpr const char* kMeeting = "meeting";  // of ranks, where no collective makes them wait
constexpr int kReadsLeast = 3;               // of a load: two manifests and a tensor
constexpr int kFolderWrites = 2;             // of a first save, which makes the folder
constexpr int kLastSync = 1;        // after it has become the latest, which no failure takes back
constexpr int kGrowthSteps = 2000;  // of a GradScaler

void check(const Result<void>& done) {
  if (!done) throw std::runtime_error(done.error().text);
}

// Without a checkpoint before it, a save that fails may have come as far as it likes.
bool is_same(const std::optional<TrainingState>& before,
             const std::optional<TrainingState>& after) {
  return !before || (after && is_same_state(*before, *after));
}

}  // namespace

std::string EngineTarget::folder(std::size_t engine) const {
  return "engine" + std::to_string(engine);
}

std::string EngineTarget::misfit_folder(std::size_t engine) const {
  return folder(engine) + "-misfit";
}

bool EngineTarget::is_first_rank() const {
  return runtime().rank() == 0;
}

Result<void> EngineTarget::save_tag(std::size_t engine, const std::string& tag) {
  auto saved = engines_[engine]->save_checkpoint(folder(engine), {.tag = tag, .files = &files_});
  if (saved) newest_[engine] = tag;
  return saved;
}

Result<void> EngineTarget::load_tag(std::size_t engine, const std::string& tag) {
  return engines_[engine]->load_checkpoint(folder(engine), {.tag = tag, .files = &files_});
}

void EngineTarget::save(std::size_t engine, const Save& save, Observations& seen) {
  files_.heal();
  if (save.failure == Save::Failure::none) {
    check(save_tag(engine, save.tag));
    see_files(engine, seen);
    writes_of_save_[engine] = files_.writes() - kFolderWrites - kLastSync;
    return see_saved(engine, save.tag, seen);
  }
  const bool lasts = save.failure == Save::Failure::disk_full;
  if (is_first_rank()) files_.fail_write(save.at % std::max(writes_of_save_[engine], 1) + 1, lasts);
  const auto kept = kept_by_files(engine, save.tag);
  const auto saved = save_tag(engine, save.tag);
  files_.heal();
  if (saved) return;
  const Kept after = kept_by_files(engine, save.tag);
  if (!is_same(kept.tagged, after.tagged) || !is_same(kept.latest, after.latest))
    throw std::runtime_error("a save that failed has changed what was saved before");
  if (is_first_rank() && has_leftovers(*options_.files, folder(engine)))
    throw std::runtime_error("a save that failed has left temporary files");
  throw UsageError(saved.error().text);
}

// What the tag and the latest checkpoint hold; of the first rank, which writes them.
EngineTarget::Kept EngineTarget::kept_by_files(std::size_t engine, const std::string& tag) const {
  if (!is_first_rank()) return {};
  const auto read = [&](const std::string& name) -> std::optional<TrainingState> {
    auto state = load_checkpoint(*options_.files, folder(engine), {.tag = name});
    return state ? std::optional(std::move(*state)) : std::nullopt;
  };
  return {.tagged = read(tag), .latest = read("")};
}

// The first rank alone writes. Its files outlast a power failure, and no temporary file stays.
void EngineTarget::see_files(std::size_t engine, Observations& seen) {
  if (!options_.observes) return;
  const bool is_other = !is_first_rank() && files_.writes() > 0;
  const bool has_more = is_first_rank() && has_leftovers(*options_.files, folder(engine));
  const double faults =
      (is_other ? 1.0 : 0.0) + (files_.is_durable() ? 0.0 : 2.0) + (has_more ? 4.0 : 0.0);
  seen.push_back({Observed::saved, engine_prefix(program_, engine) + "saved badly", {}, {faults}});
}

// What the files hold, as another program reads them.
void EngineTarget::see_saved(std::size_t engine, const std::string& tag, Observations& seen) {
  if (!is_first_rank() || !options_.observes) return;
  const auto state = load_checkpoint(*options_.files, folder(engine), {.tag = tag});
  if (!state) throw std::runtime_error(state.error().text);
  const std::string prefix = engine_prefix(program_, engine) + "saved ";
  observe(seen, Observed::saved, prefix, state->parameters);
  observe(seen, Observed::saved, prefix, state->optimizer_state);
  seen.push_back({Observed::saved,
                  prefix + "counters",
                  {},
                  {static_cast<double>(state->counters.micro_steps),
                   static_cast<double>(state->counters.global_steps),
                   static_cast<double>(state->counters.skipped_steps),
                   static_cast<double>(state->counters.global_samples)}});
  const LossScaler::State& scaler = state->loss_scaler;
  seen.push_back(
      {Observed::saved,
       prefix + "loss scaler",
       {},
       {scaler.scale, static_cast<double>(scaler.iteration),
        static_cast<double>(scaler.last_overflow), static_cast<double>(scaler.hysteresis),
        static_cast<double>(scaler.growth_tracker)}});
}

void EngineTarget::load(std::size_t engine, const Load& load, Observations& seen) {
  files_.heal();
  const std::string tag = prepare_failure(engine, load);
  const bool is_misfit = load.failure == Load::Failure::misfit;
  const std::string from = is_misfit ? misfit_folder(engine) : folder(engine);
  const auto loaded = engines_[engine]->load_checkpoint(from, {.tag = tag, .files = &files_});
  files_.heal();
  if (load.failure != Load::Failure::none) {
    if (!loaded) throw UsageError(loaded.error().text);
    return;
  }
  check(loaded);
  if (!options_.observes) return;
  inspect(engine, Inspect::What::masters, seen);
  inspect(engine, Inspect::What::optimizer_state, seen);
  see_counters(engine, seen);
}

// What a load will meet; the tag that it asks for.
std::string EngineTarget::prepare_failure(std::size_t engine, const Load& load) {
  switch (load.failure) {
    case Load::Failure::none:
      return load.tag;
    case Load::Failure::missing:
      return load.tag + "-none";
    case Load::Failure::damaged:
      if (is_first_rank()) damage_checkpoint(*options_.files, folder(engine), load.tag, load.at);
      return damaged_tag(load.tag, load.at, newest_[engine] == load.tag);
    case Load::Failure::unreadable: {
      const int ranks = runtime().world_size();
      if (runtime().rank() == load.at % ranks) files_.fail_read(1 + load.at / ranks % kReadsLeast);
      return load.tag;
    }
    case Load::Failure::misfit:
      break;
  }
  save_misfit(engine, load);
  return kMisfit;
}

// Beside the engine's own, whose latest checkpoint stays what it is. The second save lets all ranks
// see what the first has written.
void EngineTarget::save_misfit(std::size_t engine, const Load& load) {
  if (is_first_rank()) {
    const auto state = load_checkpoint(*options_.files, folder(engine), {.tag = load.tag});
    if (!state) throw std::runtime_error(state.error().text);
    check(save_checkpoint(misfitted(*state, load.at), *options_.files, misfit_folder(engine),
                          {.tag = kMisfit}));
  }
  check(engines_[engine]->save_checkpoint(misfit_folder(engine),
                                          {.tag = kMeeting, .files = &files_}));
}

void EngineTarget::load_resumed(const std::string& tag) {
  for (std::size_t i = 0; i < engines_.size(); ++i) check(load_tag(i, tag));
}

// A GradScaler that has made some good steps is loaded.
void EngineTarget::age_scaler(std::size_t engine) {
  const int grows_in = program_.engines[engine].grows_in;
  if (grows_in == 0) return;
  const std::string aged = "aged";
  check(save_tag(engine, aged));
  if (is_first_rank()) {
    auto state = load_checkpoint(*options_.files, folder(engine), {.tag = aged});
    if (!state) throw std::runtime_error(state.error().text);
    state->loss_scaler.growth_tracker = kGrowthSteps - grows_in;
    check(save_checkpoint(*state, *options_.files, folder(engine), {.tag = aged}));
  }
  check(save_tag(engine, kMeeting));
  check(load_tag(engine, aged));
}

}  // namespace zeroproof::program

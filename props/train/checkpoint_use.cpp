#include "props/train/checkpoint_use.h"

#include <algorithm>
#include <stdexcept>

#include "engine/checkpoint/checkpoint_store.h"
#include "engine/checkpoint/find_checkpoint.h"
#include "props/train/checkpoint_damage.h"
#include "props/train/scenario.h"

namespace zeroproof::train {
namespace {

constexpr const char* kTag = "kept";
constexpr const char* kMisfit = "misfit";
constexpr int kFolderWrites = 2;  // of the first save, which makes the folder
constexpr int kReadsLeast = 3;    // of a load: two manifests and a tensor

void check(const Result<void>& done) {
  if (!done) throw std::runtime_error(done.error().text);
}

// A store of the user's: the same files, by other calls, which it counts.
class UsersStore final : public CheckpointStore {
 public:
  explicit UsersStore(FileSystem& files) : files_(files) {}

  Result<void> save(TrainingState state, const std::string& folder,
                    const std::string& tag) override {
    ++calls_;
    return save_checkpoint(state, files_, folder, {.tag = tag});
  }
  Result<TrainingState> load(const std::string& folder, const LoadOptions& options) override {
    ++calls_;
    return load_checkpoint(files_, folder, options);
  }
  int calls() const { return calls_; }

 private:
  FileSystem& files_;
  int calls_ = 0;
};

// Or says that another rank's error does.
bool names_file(const Error& error, const std::string& folder) {
  return error.code == ErrorCode::cannot_run || error.text.find(folder) != std::string::npos;
}

}  // namespace

CheckpointUse::CheckpointUse(const CaseSpec& spec, Pass& pass)
    : spec_(spec),
      pass_(pass),
      engines_(dynamic_cast<EngineTarget&>(pass.target())),
      files_(*pass.scenario().files) {}

FileSystem& CheckpointUse::kept() const {
  return *pass_.scenario().files;
}

// Of the other ranks nobody compares records.
void CheckpointUse::note(CheckpointFault fault, bool is_there) {
  if (!is_there) return;
  faults_ |= static_cast<int>(fault);
  if (!is_first_rank())
    throw std::runtime_error("fault " + std::to_string(static_cast<int>(fault)) +
                             " of checkpoints on rank " + std::to_string(engines_.rank()));
}

void CheckpointUse::for_all(const Call& call) const {
  for (std::size_t i = 0; i < static_cast<std::size_t>(spec_.engines); ++i)
    call(engines_.engine(i), "engine" + std::to_string(i));
}

void CheckpointUse::save(const std::string& tag) {
  for_all([&](Engine& engine, const std::string& folder) { save(engine, folder, tag); });
}

void CheckpointUse::save(Engine& engine, const std::string& folder, const std::string& tag) {
  files_.heal();
  if (pass_.step_number() % 2 != 0) {
    UsersStore store(kept());
    check(engine.save_checkpoint(folder, {.tag = tag, .store = &store}));
    note(CheckpointFault::other_rank, store.calls() != (is_first_rank() ? 1 : 0));
  }
  check(engine.save_checkpoint(folder, {.tag = tag, .files = &files_}));
  note(CheckpointFault::other_rank, !is_first_rank() && files_.writes() > 0);
  note(CheckpointFault::not_durable, !files_.is_durable());
  if (is_first_rank()) judge_save(engine, folder, tag);
}

void CheckpointUse::judge_save(const Engine& engine, const std::string& folder,
                               const std::string& given) {
  const std::string own = "global_step" + std::to_string(engine.global_steps());
  const std::string& tag = given.empty() ? own : given;
  const auto saved = load_checkpoint(kept(), folder, {.tag = tag});
  note(CheckpointFault::incomplete, !saved);
  note(CheckpointFault::unlike, saved && !is_state_of(*saved, engine, spec_));
  note(CheckpointFault::left_behind,
       !has_one_of(kept(), folder, tag) || has_leftovers(kept(), folder, tag));
}

void CheckpointUse::load(const std::string& tag) {
  for_all([&](Engine& engine, const std::string& folder) {
    const double before = engine.loss_scale();
    check(load(engine, folder, tag));
    judge_loss_scale(engine, before);
    judge_load(engine, folder, tag);
  });
}

Result<void> CheckpointUse::load(Engine& engine, const std::string& folder,
                                 const std::string& tag) {
  int warnings = 0;
  EngineCheckpointOptions options{.tag = tag, .files = &files_};
  options.on_warning = [&](const std::string&) { ++warnings; };
  UsersStore store(files_);
  const bool is_stored = pass_.step_number() % 2 != 0;
  if (is_stored) options.store = &store;
  const auto loaded = engine.load_checkpoint(folder, options);
  note(CheckpointFault::other_rank, is_stored && store.calls() != 1);
  note(CheckpointFault::warnings, warnings != 1);
  return loaded;
}

bool CheckpointUse::is_scale_own() const {
  const bool is_dynamic = spec_.is_dynamic != 0 || spec_.has_grad_scaler != 0;
  return !is_dynamic || spec_.owns_scale != 0;
}

// Of one that was renewed, or was told another one in between, nobody knows whose it is.
void CheckpointUse::judge_loss_scale(const Engine& engine, double before) {
  const auto is_told = [](const MicroSpec& micro) { return micro.renews + micro.rescales != 0; };
  const bool is_another = spec_.first_ranks != 0;
  if (!is_scale_own() || is_another || std::ranges::any_of(spec_.micros, is_told)) return;
  note(CheckpointFault::loss_scale, engine.loss_scale() != before);
}

void CheckpointUse::judge_load(Engine& engine, const std::string& folder, const std::string& tag) {
  const auto loaded = load_checkpoint(kept(), folder, {.tag = tag});
  save(engine, folder, "again");
  if (!is_first_rank()) return;
  const auto again = load_checkpoint(kept(), folder, {.tag = "again"});
  const auto is_told = [](const MicroSpec& micro) { return micro.rescales != 0; };
  const bool is_moving = !is_scale_own() && std::ranges::none_of(spec_.micros, is_told);
  note(CheckpointFault::not_restored,
       !loaded || !again || !is_same_state(*loaded, *again, is_moving));
}

bool CheckpointUse::is_load_refused(const std::string& tag, const std::string& suffix) {
  bool is_refused = true;
  for_all([&](Engine& engine, const std::string& folder) {
    const auto loaded = load(engine, folder + suffix, tag);
    is_refused = is_refused && !loaded;
    note(CheckpointFault::untold, !loaded && !names_file(loaded.error(), folder));
  });
  note(CheckpointFault::not_refused, !is_refused);
  return is_refused;
}

// Words of the files' own, and ways out of the folder.
bool CheckpointUse::refuses_tags() {
  bool is_refused = true;
  for_all([&](Engine& engine, const std::string& folder) {
    for (const char* const tag :
         {"latest", "latest.good", ".hidden", "../tag", "a tag", "a/b", "a~2"})
      is_refused = is_refused && !engine.save_checkpoint(folder, {.tag = tag, .files = &files_});
  });
  note(CheckpointFault::not_refused, !is_refused);
  return is_refused;
}

void CheckpointUse::litter() {
  if (!is_first_rank()) return;
  for_all([&](Engine&, const std::string& folder) {
    const auto newest = find_checkpoint(kept(), folder, "");
    if (!newest) return;
    for (const char* const file : {"/notes", "/zero/notes"})
      (void)write_synced(kept(), *newest + file, "of somebody else");
  });
}

// The second save lets all ranks see what the first has written.
void CheckpointUse::age_scaler(int steps) {
  save("young");
  if (is_first_rank())
    for_all([&](Engine&, const std::string& folder) {
      auto state = load_checkpoint(kept(), folder, {.tag = "young"});
      if (!state) return;
      state->loss_scaler.growth_tracker = CaseSpec::kGrowthSteps - steps;
      check(save_checkpoint(*state, kept(), folder, {.tag = "aged"}));
    });
  save("young");
  load("aged");
}

bool CheckpointUse::try_out(const MicroSpec& micro) {
  const auto restores = static_cast<Restores>(micro.restores);
  if (restores == Restores::missing) return is_load_refused(kTag, "-none") && refuses_tags();
  if (restores == Restores::saved && micro.damages != 0 && is_first_rank())
    for_all([&](Engine&, const std::string& folder) { leave_half(kept(), folder); });
  if (restores != Restores::outdated) save(kTag);
  switch (restores) {
    case Restores::damaged:
      return try_damaged(micro.damages);
    case Restores::misfit:
      return try_misfit(micro.damages);
    case Restores::full_disk:
      return try_full_disk(micro.damages);
    case Restores::unreadable:
    case Restores::outdated:
      return try_unreadable(micro.damages);
    default:
      return true;
  }
}

bool CheckpointUse::try_damaged(int number) {
  const std::string tag = damaged_tag(kTag, number);
  if (is_first_rank())
    for_all([&](Engine&, const std::string& folder) {
      damage_checkpoint(kept(), folder, kTag, number);
    });
  return is_load_refused(tag);
}

// The second save lets all ranks see what the first has written.
bool CheckpointUse::try_misfit(int number) {
  if (is_first_rank())
    for_all([&](Engine&, const std::string& folder) {
      const auto state = load_checkpoint(kept(), folder, {.tag = kTag});
      if (state)
        check(save_checkpoint(misfitted(*state, number), kept(), folder, {.tag = kMisfit}));
    });
  save(kTag);
  return is_load_refused(kMisfit);
}

bool CheckpointUse::try_full_disk(int number) {
  bool is_refused = true;
  for_all([&](Engine& engine, const std::string& folder) {
    save(engine, folder, kTag);
    const auto before = load_checkpoint(kept(), folder, {.tag = kTag});
    const int calls = std::max(1, files_.writes() - kFolderWrites);
    if (is_first_rank()) files_.fail_write(1 + number / 2 % calls, number % 2 != 0);
    is_refused = !engine.save_checkpoint(folder, {.tag = kTag, .files = &files_}) && is_refused;
    note(CheckpointFault::not_refused, !is_refused);
    files_.heal();
    if (!is_first_rank()) return;
    const auto after = load_checkpoint(kept(), folder, {.tag = kTag});
    const auto latest = load_checkpoint(kept(), folder, {});
    note(CheckpointFault::incomplete, !before || !after || !is_same_state(*before, *after, true));
    note(CheckpointFault::incomplete, !before || !latest || !is_same_state(*before, *latest, true));
    note(CheckpointFault::left_behind, has_leftovers(kept(), folder, kTag));
  });
  return is_refused;
}

bool CheckpointUse::try_unreadable(int number) {
  const int ranks = spec_.first_ranks == 0 ? spec_.ranks : std::min(spec_.ranks, spec_.first_ranks);
  if (engines_.rank() == number % ranks) files_.fail_read(1 + number / ranks % kReadsLeast);
  const bool is_refused = is_load_refused(kTag);
  files_.heal();
  return is_refused;
}

}  // namespace zeroproof::train

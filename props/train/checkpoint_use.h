#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/checkpoint/training_state.h"
#include "props/train/case_spec.h"
#include "props/train/checkpoint_judge.h"
#include "props/train/engine_target.h"
#include "props/train/pass.h"
#include "props/train/rank_files.h"

namespace zeroproof::train {

// What a generated program does with checkpoints of its engines, in the files of its scenario. All
// ranks call; not for the baseline, which does not stop.
class CheckpointUse {
 public:
  // Both must outlive it.
  CheckpointUse(const CaseSpec& spec, Pass& pass);

  // An empty tag is the engines' own, or the latest one. Throws what the engines return.
  void save(const std::string& tag);
  void load(const std::string& tag);
  // What this micro-batch restores, of Restores::saved and what follows; whether a load or a save
  // that has to fail did so.
  bool try_out(const MicroSpec& micro);

  // In the folder of the checkpoint that was saved last lie files of somebody else.
  void litter();
  // A GradScaler that grows in so many more good steps is loaded.
  void age_scaler(int steps);

  // CheckpointFaults so far.
  int faults() const { return faults_; }

 private:
  // With the engine and the folder of its checkpoints.
  using Call = std::function<void(Engine& engine, const std::string& folder)>;

  void for_all(const Call& call) const;
  void save(Engine& engine, const std::string& folder, const std::string& tag);
  Result<void> load(Engine& engine, const std::string& folder, const std::string& tag);
  bool is_load_refused(const std::string& tag, const std::string& suffix = "");
  bool refuses_tags();
  void judge_save(const Engine& engine, const std::string& folder, const std::string& tag);
  void judge_loss_scale(const Engine& engine, double before);
  // What is loaded is saved once more.
  void judge_load(Engine& engine, const std::string& folder, const std::string& tag);

  bool try_damaged(int number);
  bool try_misfit(int number);
  bool try_full_disk(int number);
  bool try_unreadable(int number);

  bool is_first_rank() const { return engines_.rank() == 0; }
  bool is_scale_own() const;  // the user's, or configured: no load brings another one
  FileSystem& kept() const;
  void note(CheckpointFault fault, bool is_there);

  const CaseSpec& spec_;
  Pass& pass_;
  EngineTarget& engines_;
  RankFiles files_;
  int faults_ = 0;
};

}  // namespace zeroproof::train

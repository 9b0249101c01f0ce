#pragma once

#include <map>
#include <string>
#include <utility>

#include "engine/checkpoint/checkpoint_store.h"
#include "props/train/kept_files.h"
#include "zeroproof/internal/model/choice.h"

namespace zeroproof::train {

// What states came back as that went through files. That is a function of the state and of what it
// is loaded for, so runs of one program can share it. Not thread-safe.
class LoadedStates {
 public:
  // Null: not known yet.
  const TrainingState* find(const Fingerprint& key) const;
  void add(const Fingerprint& key, const TrainingState& loaded);

 private:
  std::map<Fingerprint, TrainingState> states_;
};

// Checkpoints of a simulated program. A state goes through files when it is loaded: the files of
// other states would not be read, and there are many. Not thread-safe.
class KeptCheckpoints final : public CheckpointStore {
 public:
  // Must outlive it.
  explicit KeptCheckpoints(LoadedStates& loaded) : loaded_(loaded) {}

  Result<void> save(TrainingState state, const std::string& folder,
                    const std::string& tag) override;
  Result<TrainingState> load(const std::string& folder, const LoadOptions& options) override;

  // Of everything that a load can give.
  Fingerprint fingerprint() const;

 private:
  using Place = std::pair<std::string, std::string>;  // folder, tag

  LoadedStates& loaded_;
  std::map<Place, TrainingState> states_;
};

}  // namespace zeroproof::train

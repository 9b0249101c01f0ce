#pragma once

#include <functional>
#include <string>
#include <vector>

#include "props/train/case_spec.h"
#include "props/train/engine_target.h"
#include "props/train/pass.h"

namespace zeroproof::train {

// What a generated program does with checkpoints of its engines, in the files of its scenario. All
// ranks call; not for the baseline, which does not stop.
class CheckpointUse {
 public:
  // Both must outlive it.
  CheckpointUse(const CaseSpec& spec, Pass& pass);

  // An empty tag is the engines' own, or the latest one. Throws what the engines return.
  void save(const std::string& tag) const;
  void load(const std::string& tag) const;
  // Restores::saved and what follows; whether a load that has to fail did so.
  bool try_out(Restores restores) const;

 private:
  // With the engine and the folder of its checkpoints.
  void for_all(const std::function<void(Engine& engine, const std::string& folder)>& call) const;
  void damage() const;
  void add_files_below(const std::string& folder, std::vector<std::string>& paths) const;
  FileSystem* files() const;

  const CaseSpec& spec_;
  Pass& pass_;
  EngineTarget& engines_;
};

}  // namespace zeroproof::train

#pragma once

#include <string>
#include <vector>

#include "props/program/model_tree.h"
#include "props/replay/recorded_job.h"

namespace zeroproof::recorded {

// The model that an engine of a recorded job trains, with small weights in place of its own: its
// modules with parameters, in the order of their first calls.
struct RecordedModel {
  program::Model model;
  bool runs_any(const Forward& forward) const;
  // Modules of the model that a forward does not run.
  std::vector<std::string> skipped(const Forward& forward) const;

  std::vector<std::string> called;                        // recorded modules with a node
  std::map<std::string, std::vector<std::string>> nodes;  // theirs, by recorded module
};

// Of the forwards of the engine. `takes_uncalled`: parameters that no forward uses are its own.
RecordedModel model_of(const Job& job, EngineId engine, const std::string& name,
                       bool takes_uncalled);

}  // namespace zeroproof::recorded

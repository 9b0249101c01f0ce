#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace zeroproof {

// "fc.weight/exp_avg": the parameter's name may itself hold a slash.
struct StateName {
  std::string parameter;
  std::string key;
};
StateName state_name(const std::string& name);  // without a slash: the key is empty

// Whether a state has the shape of its parameter, and is cut like it. A step is a number.
bool is_shaped_as_parameter(const std::string& key);

// How tensor-parallel ranks share a state. What is not cut like its parameter is the same
// everywhere; a parameter without a rule is `inferred`.
PartitionRule rule_of(const std::map<std::string, PartitionRule>& rules,
                      const std::string& parameter, const std::string& key);

// Whether the rank at this place writes the state. What every rank has alike is written by the
// first.
bool is_written_by(const ParallelPlace& place, const std::map<std::string, PartitionRule>& rules,
                   const std::string& parameter, const std::string& key);

// Whether the state can be saved as one rank's part: names, numbers of values, rules for all that
// several tensor-parallel ranks share. The error (usage) names the tensor.
Result<void> check_saved_state(const TrainingState& state, const SaveOptions& options);

// Exactly the targets' names are there. `path`: the checkpoint's folder.
struct SavedNames {
  std::set<std::string> parameters;
  std::set<std::string> optimizer_state;
};
Result<void> check_names(const SavedNames& saved, const LoadTargets& targets,
                         const std::string& path);

// As many parameter groups as the engine has, where both say how many (0: it does not).
Result<void> check_groups(std::size_t saved, std::size_t wanted, const std::string& path);

// Steps are equal within each group (P87); `groups` empty: one group of all.
Result<void> check_steps(const TrainingState& state,
                         const std::vector<std::vector<std::string>>& groups,
                         const std::string& path);

}  // namespace zeroproof

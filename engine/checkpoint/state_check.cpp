#include "engine/checkpoint/state_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/checkpoint/axis_plan.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/tensor_parallel.h"

namespace zeroproof {
namespace {

using Names = std::set<std::string>;

tl::unexpected<Error> cannot_save(const std::string& name, const std::string& why) {
  return fail(ErrorCode::usage, fmt::format("'{}' cannot be saved: {}", name, why));
}

Result<void> check_tensor(const FullTensor& tensor, Names& names) {
  const bool has_sizes = std::ranges::all_of(tensor.sizes, [](auto size) { return size >= 0; });
  if (!has_sizes || numel(tensor.sizes) != static_cast<std::int64_t>(tensor.values.size())) {
    return cannot_save(tensor.name, fmt::format("{} values do not fill the shape {}",
                                                tensor.values.size(), shape_text(tensor.sizes)));
  }
  if (tensor.name.empty()) return cannot_save(tensor.name, "it has no name");
  if (!names.insert(tensor.name).second) return cannot_save(tensor.name, "its name is there twice");
  return {};
}

Result<void> check_rule(const std::string& name, const TrainingState& state,
                        const ParallelPlace& place) {
  const auto found = state.partition_rules.find(name);
  const PartitionRule rule = found == state.partition_rules.end() ? PartitionRule{} : found->second;
  if (const std::string problem = problem_of(rule); !problem.empty()) {
    return cannot_save(name, problem);
  }
  const bool is_cut = place.tensor.size > 1;
  if (is_cut && rule.kind == PartitionKind::inferred) {
    return cannot_save(name,
                       "no partition rule says what it is a part of; give one, or 'replicated'");
  }
  if (is_cut && rule.kind == PartitionKind::unsupported) {
    return cannot_save(name, "its partition is not supported: " + rule.note);
  }
  return {};
}

Result<void> check_place(const ParallelPlace& place, const SaveOptions& options) {
  for (const ParallelRank at : {place.tensor, place.expert}) {
    if (at.rank < 0 || at.rank >= at.size) {
      return cannot_save("checkpoint", fmt::format("there is no rank {} of {}", at.rank, at.size));
    }
  }
  if ((place.tensor.size > 1 || place.expert.size > 1) && !options.barrier) {
    return cannot_save("checkpoint", "ranks that save parts need a barrier");
  }
  return {};
}

Result<void> check_numbers(const TrainingState& state) {
  bool are_finite = std::isfinite(state.loss_scaler.scale);
  for (const ParameterGroup& group : state.groups) {
    for (const auto& [name, value] : group.hyper_parameters) are_finite &= std::isfinite(value);
  }
  if (are_finite) return {};
  return cannot_save("checkpoint", "a hyper-parameter or the loss scale is not finite");
}

Result<void> check_same_names(Names unknown, const std::vector<TensorTarget>& targets,
                              const std::string& path, std::string_view kind) {
  for (const TensorTarget& target : targets) {
    if (unknown.erase(target.name) > 0) continue;
    return fail(ErrorCode::usage,
                fmt::format("{}: has no {} '{}', which this engine needs; load a checkpoint of the "
                            "same model and optimizer",
                            path, kind, target.name));
  }
  if (unknown.empty()) return {};
  return fail(ErrorCode::usage,
              fmt::format("{}: has the {} '{}', which this engine does not know; load it into the "
                          "model and optimizer that it was saved from",
                          path, kind, *unknown.begin()));
}

struct Step {
  std::string parameter;
  double value = 0.0;
};

// The states' steps of the group's parameters, in the order of the states.
std::vector<Step> steps_of(const TrainingState& state, const Names& group) {
  std::vector<Step> steps;
  for (const FullTensor& tensor : state.optimizer_state) {
    const StateName name = state_name(tensor.name);
    if (name.key != kStepKey || tensor.values.empty()) continue;
    if (group.empty() || group.contains(name.parameter)) {
      steps.push_back({name.parameter, tensor.values.front()});
    }
  }
  return steps;
}

}  // namespace

StateName state_name(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  if (slash == name.npos) return {.parameter = name, .key = {}};
  return {.parameter = name.substr(0, slash), .key = name.substr(slash + 1)};
}

bool is_shaped_as_parameter(const std::string& key) {
  return key != kStepKey;
}

PartitionRule rule_of(const std::map<std::string, PartitionRule>& rules,
                      const std::string& parameter, const std::string& key) {
  if (!is_shaped_as_parameter(key)) return {.kind = PartitionKind::replicated};
  const auto found = rules.find(parameter);
  return found == rules.end() ? PartitionRule() : found->second;
}

bool is_written_by(const ParallelPlace& place, const std::map<std::string, PartitionRule>& rules,
                   const std::string& parameter, const std::string& key) {
  const auto found = rules.find(parameter);
  const bool has_rule = found != rules.end();
  const bool is_part = is_shaped_as_parameter(key);
  const bool is_expert = is_part && has_rule && found->second.experts > 0;
  const bool is_cut = is_part && has_rule && found->second.kind != PartitionKind::replicated;
  return (is_expert || place.expert.rank == 0) && (is_cut || place.tensor.rank == 0);
}

Result<void> check_saved_state(const TrainingState& state, const SaveOptions& options) {
  if (auto right = check_place(options.place, options); !right) return right;
  if (auto right = check_numbers(state); !right) return right;
  if (!options.tag.empty() && !is_tag(options.tag)) {
    return cannot_save(options.tag,
                       "a tag has letters, digits, '.', '_' and '-', and begins neither with '.' "
                       "nor with 'latest'");
  }
  Names names;
  for (const FullTensor& tensor : state.parameters) {
    if (auto right = check_tensor(tensor, names); !right) return right;
    if (auto right = check_rule(tensor.name, state, options.place); !right) return right;
  }
  Names states;
  for (const FullTensor& tensor : state.optimizer_state) {
    if (auto right = check_tensor(tensor, states); !right) return right;
    const StateName name = state_name(tensor.name);
    if (name.key.empty() || name.key == kWeightKey || !names.contains(name.parameter)) {
      return cannot_save(tensor.name, "it is no state of a parameter that is saved");
    }
  }
  return {};
}

Result<void> check_names(const SavedNames& saved, const LoadTargets& targets,
                         const std::string& path) {
  auto same = check_same_names(saved.parameters, targets.parameters, path, "parameter");
  if (!same) return same;
  return check_same_names(saved.optimizer_state, targets.optimizer_state, path, "state");
}

Result<void> check_groups(std::size_t saved, std::size_t wanted, const std::string& path) {
  if (wanted == 0 || saved == 0 || wanted == saved) return {};
  return fail(ErrorCode::usage,
              fmt::format("{}: has {} parameter groups where this engine has {}; load it with the "
                          "groups that it was saved with",
                          path, saved, wanted));
}

Result<void> check_steps(const TrainingState& state,
                         const std::vector<std::vector<std::string>>& groups,
                         const std::string& path) {
  std::vector<Names> names;
  for (const auto& group : groups) names.emplace_back(group.begin(), group.end());
  if (names.empty()) names.emplace_back();
  for (std::size_t g = 0; g < names.size(); ++g) {
    if (!groups.empty() && names[g].empty()) continue;
    const std::vector<Step> steps = steps_of(state, names[g]);
    for (const Step& step : steps) {
      if (step.value == steps.front().value) continue;
      return fail(
          ErrorCode::usage,
          fmt::format("{}: group {} has unequal steps: {} of '{}' and {} of '{}'; a group is "
                      "stepped together, so load a checkpoint with these groups",
                      path, g, steps.front().value, steps.front().parameter, step.value,
                      step.parameter));
    }
  }
  return {};
}

}  // namespace zeroproof

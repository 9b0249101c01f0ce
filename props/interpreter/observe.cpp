#include "props/interpreter/observe.h"

#include <algorithm>
#include <limits>

#include "props/program/forward_flow.h"

namespace zeroproof::program {

std::string engine_prefix(const Program& program, std::size_t engine) {
  return engine == 0 ? std::string() : program.engines[engine].name + ".";
}

void observe(Observations& seen, Observed what, const std::string& prefix,
             const std::vector<FullTensor>& tensors) {
  for (const FullTensor& tensor : tensors)
    seen.push_back({what, prefix + tensor.name, tensor.sizes, tensor.values});
}

void observe_outcome(Observations& seen, const std::string& prefix, const StepOutcome& outcome) {
  seen.push_back({Observed::outcome,
                  prefix + "applied, overflow",
                  {},
                  {outcome.is_applied ? 1.0 : 0.0, outcome.has_overflow ? 1.0 : 0.0}});
  const double norm = outcome.grad_norm.value_or(std::numeric_limits<double>::quiet_NaN());
  seen.push_back({Observed::norm, prefix + "gradient norm", {}, {norm}});
}

void observe_counted_step(Observations& seen, const std::string& prefix,
                          const StepOutcome& outcome) {
  seen.push_back({Observed::counters,
                  prefix + "counted step: applied, overflow, has a norm",
                  {},
                  {outcome.is_applied ? 1.0 : 0.0, outcome.has_overflow ? 1.0 : 0.0,
                   outcome.grad_norm ? 1.0 : 0.0}});
}

namespace {

// A node's module under the name that it has in its model.
std::string qualified(TreeModule& module, const std::string& node) {
  for (const nn::NamedModule& named : module.named_modules())
    if (named.module == module.module_of(node)) return named.name + ".";
  return node + ".";
}

}  // namespace

std::vector<std::string> ungrouped_prefixes(TreeModule& module, const Model& model) {
  std::vector<std::string> prefixes;
  for (const Module* const node : nodes_of(model))
    if (trained_of(*node) == Trained::ungrouped) prefixes.push_back(qualified(module, node->name));
  return prefixes;
}

std::vector<TensorList> parameter_groups_of(const Program& program, std::size_t engine,
                                            TreeModule& module) {
  const EngineSpec& spec = program.engines[engine];
  const auto ungrouped = ungrouped_prefixes(module, program.model_of(spec.name));
  if (spec.parameter_groups == 1 && ungrouped.empty() && !spec.lists_frozen) return {};
  std::vector<TensorList> groups(static_cast<std::size_t>(spec.parameter_groups));
  std::size_t next = 0;
  for (const nn::NamedParameter& named : module.named_parameters()) {
    const auto is_prefix = [&](const std::string& prefix) {
      return named.name.starts_with(prefix);
    };
    const auto is_same = [&](const Tensor& known) { return known.is_same(named.tensor); };
    const auto holds = [&](const TensorList& group) { return std::ranges::any_of(group, is_same); };
    const bool is_listed = spec.lists_frozen || named.tensor.requires_grad();
    if (!is_listed || std::ranges::any_of(ungrouped, is_prefix)) continue;
    if (std::ranges::none_of(groups, holds)) groups[next++ % groups.size()].push_back(named.tensor);
  }
  std::erase_if(groups, [](const TensorList& group) { return group.empty(); });
  return groups;
}

}  // namespace zeroproof::program

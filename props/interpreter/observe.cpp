#include "props/interpreter/observe.h"

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

}  // namespace zeroproof::program

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/zero/zero_context.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof {

class ParameterGatherer;

// What stage 3 offers beside ZeroOptimizer; the engine forwards to it.
class Zero3Api {
 public:
  virtual ~Zero3Api() = default;

  // docs/spec/zero.md 3.9: gather_contexts_overlap, modified_without_modifier_rank,
  // gathered_parameter_left_device. Parameters of other owners are ignored.
  virtual void gathered_parameters(const TensorList& parameters, std::optional<int> modifier_rank,
                                   const std::function<void()>& body) = 0;
  // 3.7. UsageError for a module that is not the engine's.
  virtual void set_leaf_module(nn::Module& module) = 0;
  // 3.8. The same.
  virtual void register_external_parameter(nn::Module& module, const Tensor& parameter) = 0;

  // Runs the work of one gradient hook with what the hook policy wants before and after it: leaf
  // modules have one hook of the engine's. Without one, the work alone runs.
  using HookRunner = std::function<void(const std::function<void()>& work)>;
  virtual void set_hook_runner(HookRunner runner) = 0;

  // Re-registers the hooks of all modules, which makes the recorded order invalid (#8043).
  virtual void register_module_hooks() = 0;
  virtual void remove_module_hooks() = 0;

  // In events the root is called "model", or by the prefix, which then goes before all names.
  virtual void set_module_prefix(const std::string& prefix) = 0;
  // One zparam.status for every parameter.
  virtual void report_parameters() = 0;

  virtual std::size_t forward_stack_depth() const = 0;  // P74
  virtual ParameterGatherer& gatherer() = 0;            // for properties and the eager fallback
};

}  // namespace zeroproof

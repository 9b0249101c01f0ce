#pragma once

#include <memory>
#include <set>
#include <vector>

#include "engine/zero/stage3/parameter_coordinator.h"
#include "model/custom_function.h"

namespace zeroproof {

// The hooks of all modules of one engine (docs/spec/zero.md 3.2): before a module's forward a
// fetch, after it a release; and around its backward the same, by one Function at every input
// and one at every output. Both are in the split form with a vmap rule, so that they pass
// through function transforms (docs/spec/zero.md 4); at every level of those the inputs are counted
// by themselves.
//
// Each call of a module counts its own inputs, in each graph task again: a retained graph releases
// again in every backward. Upstream counts in the module.
class ModuleHooks {
 public:
  // All must outlive it.
  ModuleHooks(ZeroContext& context, Zero3Modules& modules, ParameterCoordinator& coordinator,
              ParameterGatherer& gatherer);
  ~ModuleHooks();
  ModuleHooks(const ModuleHooks&) = delete;
  ModuleHooks& operator=(const ModuleHooks&) = delete;

  // On every module that is not below a leaf module.
  void add();
  void remove();

  // How many forwards of modules are under way; more when some were left by an exception (H11).
  std::size_t stack_depth() const { return stack_.size(); }

 private:
  // One call of a module; it lives as long as its part of the graph.
  struct Invocation {
    ~Invocation() { forget(); }
    void forget() const noexcept;

    ModuleCall call;
    std::weak_ptr<RetainedGraphs> retained = {};
    std::map<std::int32_t, std::int64_t> inputs = {};  // needing a gradient, by transform level
    GraphTaskId task = {};                             // whose backward is being counted
    std::int64_t arrived = 0;
    std::int64_t applied_outputs = 0;  // upstream: outputs whose backward has not come
  };
  using InvocationPtr = std::shared_ptr<Invocation>;

  void add_to(Zero3Module& module);
  void observe_reads(Zero3Module& module);
  TensorList before_forward(Zero3Module& module, const TensorList& inputs);
  void settle_earlier_backwards();
  void enter_forward(Zero3Module& module, const InvocationPtr& invocation);
  TensorList after_forward(Zero3Module& module, const TensorList& outputs);
  void adopt_returned_parameters(Zero3Module& module, const TensorList& outputs);
  void abandon_down_to(std::size_t depth);
  bool stays_for_reader(const PartitionedParameter& parameter) const;
  void on_parameter_read(const Tensor& read);
  InvocationPtr invoke(Zero3Module& module);

  TensorList wrap_inputs(const InvocationPtr& invocation, const TensorList& inputs);
  TensorList wrap_outputs(const InvocationPtr& invocation, const TensorList& outputs);
  CustomFunction function_behind_input(const InvocationPtr& invocation);
  CustomFunction function_behind_output(const InvocationPtr& invocation);
  void before_backward(Invocation& invocation);
  void after_input(Invocation& invocation, std::int32_t level);
  void release_backward(Invocation& invocation);
  bool leaks_stack() const { return context_.upstream.module_stack_leaks; }
  bool counts_in_module() const { return context_.upstream.all; }

  ZeroContext& context_;
  Zero3Modules& modules_;
  ParameterCoordinator& coordinator_;
  ParameterGatherer& gatherer_;
  std::vector<HookHandle> handles_;
  std::vector<InvocationPtr> stack_;       // of forwards
  std::vector<InvocationPtr> of_modules_;  // the last call of each; upstream's counters
  std::int64_t next_invocation_ = 0;
  std::int64_t forwards_ = 0;  // of outermost modules
};

}  // namespace zeroproof

#include "engine/zero/stage3/module_hooks.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "model/check.h"

namespace zeroproof {

ModuleHooks::ModuleHooks(ZeroContext& context, Zero3Modules& modules,
                         ParameterCoordinator& coordinator, ParameterGatherer& gatherer)
    : context_(context), modules_(modules), coordinator_(coordinator), gatherer_(gatherer) {
  for (Zero3Module& module : modules_.all())
    of_modules_.push_back(std::make_shared<Invocation>(Invocation{.call = {&module}}));
  add();
}

ModuleHooks::~ModuleHooks() {
  remove();
}

void ModuleHooks::add() {
  for (Zero3Module& module : modules_.all()) {
    observe_reads(module);  // below a leaf, too (docs/spec/zero.md 3.8)
    if (!module.is_below_leaf) add_to(module);
  }
}

void ModuleHooks::observe_reads(Zero3Module& module) {
  module.module->set_parameter_observer([this](const Tensor& read) { on_parameter_read(read); });
}

void ModuleHooks::add_to(Zero3Module& module) {
  nn::Module& hooked = *module.module;
  handles_.push_back(hooked.register_forward_pre_hook(
      [this, &module](const TensorList& inputs) { return before_forward(module, inputs); }));
  handles_.push_back(
      hooked.register_forward_hook([this, &module](const TensorList&, const TensorList& outputs) {
        return after_forward(module, outputs);
      }));
  if (leaks_stack()) return;
  hooked.set_compiled_call(
      [this](Autograd&, const TensorList& inputs, const nn::Module::Forward& forward) {
        const std::size_t depth = stack_.size();
        try {
          return forward(inputs);
        } catch (...) {
          // What is around it does the rest.
          const std::size_t rest = depth - 1;
          if (depth > 0) abandon_down_to(rest);
          throw;
        }
      });
}

void ModuleHooks::remove() {
  for (HookHandle& handle : handles_) handle.remove();
  handles_.clear();
  for (Zero3Module& module : modules_.all()) {
    module.module->set_parameter_observer({});
    module.module->set_compiled_call({});
  }
}

// An invocation lives as long as its graph, so only a stack that leaks remembers the last.
ModuleHooks::InvocationPtr ModuleHooks::invoke(Zero3Module& module) {
  InvocationPtr& last = of_modules_[static_cast<std::size_t>(module.id)];
  if (counts_in_module()) {
    last->inputs.clear();  // pending ones are forgotten at each call
    return last;
  }
  const bool is_plain =
      !context_.autograd.local().transforms && context_.autograd.current_graph_task().is_none();
  auto made = std::make_shared<Invocation>(Invocation{.call = {.module = &module,
                                                               .invocation = next_invocation_++,
                                                               .graph = is_plain ? forwards_ : -1},
                                                      .retained = coordinator_.retained_graphs()});
  if (leaks_stack()) last = made;
  return made;
}

// A graph may go at any time. What is kept for it then stays until the next step, at worst.
void ModuleHooks::Invocation::forget() const noexcept {
  try {
    if (const auto holders = retained.lock()) holders->forget(call);
  } catch (const std::exception&) {  // the runtime has failed, which its next use will report
  }
}

TensorList ModuleHooks::before_forward(Zero3Module& module, const TensorList& inputs) {
  if (stack_.empty()) ++forwards_;
  if (module.is_root) {
    if (!context_.upstream.abort_leaks_state) settle_earlier_backwards();
    coordinator_.reset_step();
  }
  const InvocationPtr invocation = invoke(module);
  const std::size_t depth = stack_.size();
  try {
    enter_forward(module, invocation);
    return wrap_inputs(invocation, inputs);
  } catch (...) {
    if (!leaks_stack()) abandon_down_to(depth);
    throw;
  }
}

// A backward that no epilogue followed, e.g. one that did not reach the engine's outputs.
void ModuleHooks::settle_earlier_backwards() {
  const bool is_idle = stack_.empty() && context_.autograd.current_graph_task().is_none();
  if (is_idle && coordinator_.has_active_backward()) coordinator_.release_backward_leftovers(false);
}

void ModuleHooks::enter_forward(Zero3Module& module, const InvocationPtr& invocation) {
  const Events::Call reported(context_.events, "z3.pre_forward");
  stack_.push_back(invocation);
  coordinator_.visit(module);
  coordinator_.fetch(invocation->call, true);
}

TensorList ModuleHooks::after_forward(Zero3Module& module, const TensorList& outputs) {
  ZP_CHECK(!stack_.empty(), "a module's forward ends after it began");
  InvocationPtr invocation = stack_.back();
  stack_.pop_back();
  // With a stack that leaks, what is on top may be a module that never came to its end.
  if (leaks_stack()) invocation = of_modules_[static_cast<std::size_t>(module.id)];
  adopt_returned_parameters(module, outputs);
  {
    const Events::Call reported(context_.events, "z3.post_forward");
    coordinator_.release(invocation->call, true);
  }
  return wrap_outputs(invocation, outputs);
}

// 3.8 (ii). The module around this one uses it from now on.
void ModuleHooks::adopt_returned_parameters(Zero3Module& module, const TensorList& outputs) {
  for (const Tensor& output : outputs) {
    PartitionedParameter* parameter = gatherer_.find(output);
    if (!parameter) continue;
    if (!stack_.empty()) {
      const auto has_it = [&](const InvocationPtr& around) {
        return contains(around->call.module->external, parameter);
      };
      if (std::none_of(stack_.begin(), stack_.end(), has_it)) {
        parameter->set_external(true);
        coordinator_.add_external(*stack_.back()->call.module, *parameter);
      }
    }
    std::erase(module.external, parameter);
  }
}

void ModuleHooks::abandon_down_to(std::size_t depth) {
  while (stack_.size() > depth) {
    const InvocationPtr invocation = std::move(stack_.back());
    stack_.pop_back();
    coordinator_.abandon_forward(invocation->call);
  }
}

// What is whole for its reader's sake. Upstream does not ask why it is whole: what was gathered for
// another module, or stays until a user's context gives it up, is empty in the reader's backward.
bool ModuleHooks::stays_for_reader(const PartitionedParameter& parameter) const {
  if (!parameter.is_available()) return false;
  if (context_.upstream.all || parameter.is_external()) return true;
  return contains(stack_.back()->call.module->parameters(), &parameter);
}

// 3.8 (i). The module whose forward reads a parameter that was not gathered for it uses it from now
// on.
void ModuleHooks::on_parameter_read(const Tensor& read) {
  PartitionedParameter* parameter = gatherer_.find(read);
  if (!parameter || stack_.empty() || stays_for_reader(*parameter)) return;
  const ModuleCall& call = stack_.back()->call;
  coordinator_.add_external(*call.module, *parameter);
  gatherer_.gather({parameter});
  if (!counts_in_module())
    parameter->add_use({.module = call.module->id, .invocation = call.invocation});
}

}  // namespace zeroproof

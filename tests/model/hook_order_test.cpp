// Steps 2 to 8 of the evaluation of a node (docs/spec/autograd.md 6) with hooks of every kind
// in random numbers and orders of registration, against a model of them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/accumulate_grad.h"
#include "model/multi_grad_hook.h"
#include "tests/model/pick.h"
#include "tests/model/random_program.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

using testing::pick;
using testing::Program;
using testing::ProgramRun;

enum class HookKind : std::uint8_t { tensor, retain, pre, post, post_accumulate };

struct HookSpec {
  HookKind kind = HookKind::tensor;
  double factor = 0;  // what it multiplies by; 0: it returns no tensor
};

// hooks[i] are those of tensor i of the chain; tensor 0 is the leaf.
using ChainSpec = std::vector<std::vector<HookSpec>>;
using Events = std::vector<std::string>;

ChainSpec random_chain() {
  ChainSpec chain(static_cast<std::size_t>(pick(1, 5)));
  for (std::size_t i = 0; i < chain.size(); ++i)
    for (int n = pick(0, 7); n > 0; --n)
      chain[i].push_back({HookKind{static_cast<std::uint8_t>(pick(0, i == 0 ? 5 : 4))},
                          static_cast<double>(pick(0, 4))});
  return chain;
}

std::string text_of(const Tensor& tensor) {
  return tensor.is_defined() ? fmt::format("{}", tensor.values()[0]) : "none";
}

std::string event(char kind, std::size_t tensor, std::size_t hook, const std::string& seen) {
  return fmt::format("{} {}.{} {}", kind, tensor, hook, seen);
}

// What a hook that multiplies returns.
Tensor scaled(const Tensor& grad, double factor) {
  if (factor == 0) return {};
  return Tensor::full(grad.sizes(), grad.values()[0] * factor);
}

class Chain {
 public:
  explicit Chain(const ChainSpec& spec) : ag_(ops_) {
    tensors_.push_back(Tensor::full({1}, 1.0));
    tensors_[0].set_requires_grad(true);
    while (tensors_.size() < spec.size()) tensors_.push_back(mul(ag_, tensors_.back(), 2.0));
    loss_ = sum(ag_, tensors_.back());  // owns the AccumulateGrad when there is only the leaf
    for (std::size_t i = 0; i < spec.size(); ++i)
      for (std::size_t h = 0; h < spec[i].size(); ++h) hook(i, h, spec[i][h]);
    ag_.backward(loss_);
  }

  Events events;

 private:
  void hook(std::size_t i, std::size_t h, const HookSpec& spec) {
    const Tensor t = tensors_[i];
    const auto node = gradient_edge(ag_, t).node;
    const auto saw = [this, i, h](char kind, const std::string& grad) {
      events.push_back(event(kind, i, h, grad + " " + text_of(tensors_[i].grad())));
    };
    const double factor = spec.factor;
    switch (spec.kind) {
      case HookKind::tensor:
        t.register_hook([=](const Tensor& grad) {
          saw('T', text_of(grad));
          return scaled(grad, factor);
        });
        return;
      case HookKind::retain:
        return t.retain_grad();
      case HookKind::pre:
        node->register_prehook([=](const TensorList& grads) {
          saw('P', text_of(grads[0]));
          return factor == 0 ? TensorList{} : TensorList{scaled(grads[0], factor)};
        });
        return;
      case HookKind::post:
        node->register_hook([=](const TensorList& grad_inputs, const TensorList& grad_outputs) {
          const bool is_leaf = grad_inputs.empty();
          saw('Q', (is_leaf ? "-" : text_of(grad_inputs[0])) + " " + text_of(grad_outputs[0]));
          TensorList replacement = grad_inputs;
          if (is_leaf || factor == 0) return TensorList{};
          replacement[0] = scaled(grad_inputs[0], factor);
          return replacement;
        });
        return;
      case HookKind::post_accumulate:
        t.register_post_accumulate_grad_hook([=](const Tensor&) { saw('A', ""); });
        return;
    }
  }

  CpuOps ops_;
  Autograd ag_;
  TensorList tensors_;
  Tensor loss_;
};

// The same chain as in section 6.
class ChainModel {
 public:
  explicit ChainModel(const ChainSpec& spec) : spec_(spec) {
    double grad = 1;
    for (std::size_t i = spec.size(); i-- > 0;) grad = node(i, grad);
  }

  Events events;

 private:
  double node(std::size_t i, double grad) {
    stored_ = "none";
    grad = each(i, HookKind::tensor, 'T', grad);
    if (i > 0 && has(i, HookKind::retain)) stored_ = fmt::format("{}", grad);
    grad = each(i, HookKind::pre, 'P', grad);
    if (i > 0) return each(i, HookKind::post, 'Q', 2 * grad, fmt::format(" {}", grad));
    stored_ = fmt::format("{}", grad);
    for (std::size_t h = 0; h < spec_[0].size(); ++h)
      if (spec_[0][h].kind == HookKind::post_accumulate) see('A', 0, h, "");
    for (std::size_t h = 0; h < spec_[0].size(); ++h)
      if (spec_[0][h].kind == HookKind::post) see('Q', 0, h, fmt::format("- {}", grad));
    return 0;
  }

  double each(std::size_t i, HookKind kind, char letter, double grad,
              const std::string& more = "") {
    for (std::size_t h = 0; h < spec_[i].size(); ++h) {
      if (spec_[i][h].kind != kind) continue;
      see(letter, i, h, fmt::format("{}{}", grad, more));
      if (spec_[i][h].factor != 0) grad *= spec_[i][h].factor;
    }
    return grad;
  }

  bool has(std::size_t i, HookKind kind) const {
    return std::any_of(spec_[i].begin(), spec_[i].end(),
                       [kind](const HookSpec& hook) { return hook.kind == kind; });
  }

  void see(char letter, std::size_t i, std::size_t h, const std::string& grad) {
    events.push_back(event(letter, i, h, grad + " " + stored_));
  }

  const ChainSpec& spec_;
  std::string stored_;
};

RC_GTEST_PROP(HookOrder, Within_a_node_is_tensor_retain_pre_node_post, ()) {
  const ChainSpec spec = random_chain();
  const Chain chain(spec);
  const ChainModel model(spec);
  RC_ASSERT(chain.events == model.events);
}

struct MultiHook {
  std::vector<std::size_t> tensors;
  bool is_all = true;
};

// Of a tensor: its place in the graph.
struct Place {
  const Node* node = nullptr;
  std::uint32_t slot = 0;
};

// The multi-grad hooks of rule H6 on one task, node by node.
class MultiHookModel {
 public:
  MultiHookModel(const std::vector<MultiHook>& hooks, std::vector<Place> places)
      : hooks_(hooks), places_(std::move(places)) {
    for (std::size_t h = 0; h < hooks_.size(); ++h)
      for (std::size_t i = 0; i < hooks_[h].tensors.size(); ++i) attach(h, i);
  }

  void begin(const std::vector<const Node*>& will_execute) {
    will_execute_ = will_execute;
    calls_.assign(hooks_.size(), 0);
    masks_.assign(hooks_.size(), "");
  }

  void reach(const Node* node) {
    for (const Slot& slot : slots_)
      if (slot.place.node == node)
        for (const auto& [h, i] : slot.calls) call(h, i);
  }

  Events events;

 private:
  struct Slot {
    Place place;
    std::vector<std::pair<std::size_t, std::size_t>> calls;
  };

  // Hooks of one output slot stay together, slots in the order of their first hook.
  void attach(std::size_t h, std::size_t i) {
    const Place place = places_[hooks_[h].tensors[i]];
    const auto is_it = [&](const Slot& slot) {
      return slot.place.node == place.node && slot.place.slot == place.slot;
    };
    auto at = std::find_if(slots_.begin(), slots_.end(), is_it);
    if (at == slots_.end()) at = slots_.insert(at, Slot{place, {}});
    at->calls.emplace_back(h, i);
  }

  void call(std::size_t h, std::size_t i) {
    if (calls_[h] == 0) masks_[h].assign(hooks_[h].tensors.size(), '-');
    ++calls_[h];
    masks_[h][i] = 'x';
    if (!hooks_[h].is_all) {
      if (calls_[h] == 1) events.push_back(fmt::format("any {}", h));
    } else if (calls_[h] == expected(h)) {
      events.push_back(fmt::format("all {} {}", h, masks_[h]));
      calls_[h] = 0;  // a tensor that was not expected starts over (P92)
    }
  }

  std::size_t expected(std::size_t h) const {
    const auto& tensors = hooks_[h].tensors;
    return static_cast<std::size_t>(
        std::count_if(tensors.begin(), tensors.end(), [&](std::size_t tensor) {
          return std::count(will_execute_.begin(), will_execute_.end(), places_[tensor].node) != 0;
        }));
  }

  const std::vector<MultiHook>& hooks_;
  std::vector<Place> places_;
  std::vector<Slot> slots_;
  std::vector<const Node*> will_execute_;
  std::vector<std::size_t> calls_;
  std::vector<std::string> masks_;
};

std::vector<MultiHook> random_hooks(const TensorList& tensors) {
  std::vector<MultiHook> hooks(static_cast<std::size_t>(pick(1, 4)));
  for (MultiHook& hook : hooks) {
    hook.is_all = pick(0, 3) != 0;
    for (int i = pick(1, 5); i > 0; --i) {
      const auto place = pick<std::size_t>(0, tensors.size());
      hook.tensors.push_back(tensors[place].requires_grad() ? place : 0);
    }
  }
  return hooks;
}

void register_all(ProgramRun& run, const std::vector<MultiHook>& hooks, Events& events) {
  for (std::size_t h = 0; h < hooks.size(); ++h) {
    TensorList on;
    for (const std::size_t tensor : hooks[h].tensors) on.push_back(run.tensors()[tensor]);
    if (!hooks[h].is_all) {
      register_any_grad_hook(run.autograd(), on,
                             [&events, h](auto&) { events.push_back(fmt::format("any {}", h)); });
      continue;
    }
    register_multi_grad_hook(run.autograd(), on, [&events, h](const TensorList& grads) {
      std::string mask;
      for (const Tensor& grad : grads) mask += grad.is_defined() ? 'x' : '-';
      events.push_back(fmt::format("all {} {}", h, mask));
    });
  }
}

RC_GTEST_PROP(HookOrder, Of_multi_grad_hooks_follows_the_expected_calls, ()) {
  Program program = testing::random_program({5, 12, 1, 0, false});
  program.backwards[0].is_accumulating = true;
  ProgramRun run(program);
  const std::vector<MultiHook> hooks = random_hooks(run.tensors());
  Events events;
  register_all(run, hooks, events);
  std::vector<Place> places;
  std::vector<std::shared_ptr<Node>> alive;
  for (const Tensor& tensor : run.tensors()) {
    const Edge edge = gradient_edge(run.autograd(), tensor);
    places.push_back({edge.node.get(), tensor.is_leaf() ? 0 : tensor.output_nr()});
    alive.push_back(edge.node);
  }
  TensorList roots;
  for (const std::size_t root : program.backwards[0].roots) roots.push_back(run.tensors()[root]);
  TensorList inputs;
  for (const std::size_t input : program.backwards[0].inputs)
    inputs.push_back(run.tensors()[input]);
  const GraphWalk walk = walk_graph(run.autograd(), {.roots = roots, .inputs = inputs});
  MultiHookModel model(hooks, places);
  const std::set<NodeId> visited = testing::nodes_visited(walk.snapshot);
  const std::set<NodeId> executed = testing::nodes_run(walk.snapshot);
  std::vector<const Node*> will_execute;
  for (const auto& [node, id] : walk.ids)
    if (visited.contains(id) && executed.contains(id)) will_execute.push_back(node);
  model.begin(will_execute);
  const std::vector<testing::SlowStep> steps = testing::run_slowly({{walk.snapshot}});
  const auto node_of = [&](const testing::SlowStep& step) {
    return walk.nodes[static_cast<std::size_t>(step.node.value)].get();
  };
  // A single root is a task of its own: its tensors' hooks run although it leads to no input.
  const Node* const root = places[program.backwards[0].roots.front()].node;
  const bool is_step = std::ranges::find(steps, root, node_of) != steps.end();
  if (roots.size() == 1 && !is_step) model.reach(root);
  for (const testing::SlowStep& step : steps) model.reach(node_of(step));
  run.run_backwards();
  RC_CLASSIFY(!events.empty(), "some fire");
  RC_ASSERT(events == model.events);
}

}  // namespace
}  // namespace zeroproof

#include "props/program/forward_flow.h"

#include <functional>
#include <numeric>

namespace zeroproof::program {
namespace {

const Linear* linear_of(const Module& module) {
  return std::get_if<Linear>(&module.kind);
}
const Custom* custom_of(const Module& module) {
  return std::get_if<Custom>(&module.kind);
}

// Which of an owner's weights have gradients, in no group, too.
class FlowWalk {
 public:
  FlowWalk(const Model& model, const FlowOptions& options) : model_(model), options_(options) {}

  ForwardFlow run() {
    bool needs_grad = options_.inputs_need_grad;
    Reach body;
    walk(model_.body, -1, body, needs_grad);
    body.has_graph = needs_grad;
    if (model_.heads.empty()) flow_.losses.push_back(body);
    for (std::size_t head = 0; head < model_.heads.size(); ++head) {
      Reach reach = body;
      bool needs = needs_grad;
      walk(model_.heads[head], static_cast<int>(head), reach, needs);
      reach.has_graph = needs;
      flow_.losses.push_back(std::move(reach));
    }
    return std::move(flow_);
  }

 private:
  void walk(const ModuleList& modules, int head, Reach& reach, bool& needs_grad) {
    for (const Module& module : modules)
      if (!options_.skipped.contains(module.name)) visit(module, head, reach, needs_grad);
  }

  void visit(const Module& module, int head, Reach& reach, bool& needs_grad) {
    if (std::holds_alternative<Unused>(module.kind)) return;
    flow_.ran.emplace(module.name, head);
    if (checkpoints_ == 0) flow_.unwrapped.insert(module.name);
    if (const auto* const checkpoint = std::get_if<Checkpoint>(&module.kind)) {
      visit_checkpoint(*checkpoint, head, reach, needs_grad);
    } else if (const auto* const tiled = std::get_if<Tiled>(&module.kind)) {
      visit_tiled(*tiled, head);
    } else if (const ModuleList* const body = body_of(module)) {
      walk(*body, head, reach, needs_grad);
    } else {
      use(module, reach, needs_grad);
    }
    if (needs_grad) flow_.passes.insert(module.name);
  }

  // Without an input that needs a gradient a reentrant one has none for its weights either.
  void visit_checkpoint(const Checkpoint& checkpoint, int head, Reach& reach, bool& needs_grad) {
    Reach unseen;
    const bool has_graph = needs_grad || !checkpoint.is_reentrant;
    bool inner = needs_grad;
    ++checkpoints_;
    const std::set<std::string> passed = flow_.passes;
    walk(checkpoint.body, head, has_graph ? reach : unseen, inner);
    if (has_graph)
      needs_grad = inner;
    else
      flow_.passes = passed;
    --checkpoints_;
  }

  void visit_tiled(const Tiled& tiled, int head) {
    Reach inside;
    bool needs_grad = true;
    const std::set<std::string> passed = flow_.passes;
    ++checkpoints_;
    walk(tiled.body, head, inside, needs_grad);
    --checkpoints_;
    flow_.passes = passed;
    flow_.tiled = inside.weights;
  }

  void use(const Module& module, Reach& reach, bool& needs_grad) {
    if (const auto* const experts = std::get_if<Experts>(&module.kind)) {
      flow_.has_unfed_experts = flow_.has_unfed_experts || !needs_grad;
      const int expert = options_.expert % experts->experts;
      return add({module.name + "/e" + std::to_string(expert)}, reach, needs_grad);
    }
    if (std::holds_alternative<OwnWeight>(module.kind))
      return add({module.name}, reach, needs_grad);
    if (const auto* const shared = std::get_if<Shared>(&module.kind)) {
      if (const Module* const owner = find(shared->module)) use_owner(*owner, reach, needs_grad);
      return;
    }
    const std::string* other = nullptr;
    if (const auto* const tied = std::get_if<Tied>(&module.kind)) other = &tied->module;
    if (const auto* const external = std::get_if<ExternalUse>(&module.kind))
      other = &external->module;
    if (!other) return use_owner(module, reach, needs_grad);
    const Module* const owner = find(*other);
    if (owner && has_trained_weight(*owner) && !options_.frozen.contains(owner->name))
      add({owner->name}, reach, needs_grad);
  }

  void use_owner(const Module& owner, Reach& reach, bool& needs_grad) {
    if (!options_.frozen.contains(owner.name)) add(weights_with_gradient(owner), reach, needs_grad);
  }

  static void add(const std::set<std::string>& weights, Reach& reach, bool& needs_grad) {
    reach.weights.insert(weights.begin(), weights.end());
    needs_grad = needs_grad || !weights.empty();
  }

  const Module* find(const std::string& name) const { return find_module(model_, name); }

  const Model& model_;
  const FlowOptions& options_;
  ForwardFlow flow_;
  int checkpoints_ = 0;
};

}  // namespace

ForwardFlow flow_of(const Model& model, const FlowOptions& options) {
  return FlowWalk(model, options).run();
}

std::set<std::string> weights_with_gradient(const Module& owner) {
  std::set<std::string> weights;
  const Trained trained = trained_of(owner);
  if (trained == Trained::frozen || elements_of(owner) == 0) return weights;
  if (trained != Trained::bias_only) weights.insert(owner.name);
  if (const Linear* const linear = linear_of(owner); linear && linear->has_bias)
    weights.insert(owner.name + "/bias");
  if (const Custom* const custom = custom_of(owner); custom && custom->weights > 1)
    weights.insert(owner.name + "/1");
  return weights;
}

std::set<std::string> trained_weights(const Model& model) {
  std::set<std::string> weights;
  for (const Module* const node : nodes_of(model)) {
    if (std::holds_alternative<OwnWeight>(node->kind)) weights.insert(node->name);
    if (const auto* const experts = std::get_if<Experts>(&node->kind))
      for (int i = 0; i < experts->experts; ++i)
        weights.insert(node->name + "/e" + std::to_string(i));
  }
  for (const Module* const owner : weight_owners(model))
    if (trained_of(*owner) != Trained::ungrouped) weights.merge(weights_with_gradient(*owner));
  return weights;
}

std::vector<const Module*> weight_owners(const Model& model) {
  std::vector<const Module*> owners;
  for (const Module* const node : nodes_of(model))
    if (linear_of(*node) || custom_of(*node)) owners.push_back(node);
  return owners;
}

std::int64_t elements_of(const Module& owner) {
  if (const Linear* const linear = linear_of(owner))
    return std::int64_t{linear->inputs} * linear->outputs;
  const Custom* const custom = custom_of(owner);
  if (!custom) return 0;
  return std::accumulate(custom->shape.begin(), custom->shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

Trained trained_of(const Module& owner) {
  if (const Linear* const linear = linear_of(owner)) return linear->trained;
  const Custom* const custom = custom_of(owner);
  return custom ? custom->trained : Trained::frozen;
}

bool has_trained_weight(const Module& owner) {
  const Trained trained = trained_of(owner);
  return elements_of(owner) > 0 && (trained == Trained::all || trained == Trained::ungrouped);
}

}  // namespace zeroproof::program

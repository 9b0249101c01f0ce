// Forwards and backwards that several productions share.
#include <algorithm>
#include <array>

#include "props/program/scene.h"

namespace zeroproof::program {
Forward Scene::forward() {
  Forward forward{.engine = engine_, .as = new_value()};
  const bool has_experts = traits().has_experts;
  forward.inputs_need_grad = policy_.inputs_need_grad || has_experts;
  if (has_experts) forward.expert = source_.between(0, 1);
  return forward;
}

bool Scene::add_forward(Forward& forward) {
  if (add({forward})) return true;
  if (forward.inputs_need_grad || forward.mode != Forward::Mode::train) return false;
  forward.inputs_need_grad = true;
  return add({forward});
}

std::optional<std::string> Scene::loss() {
  if (const auto ahead = ahead_.find(engine_); ahead != ahead_.end()) {
    const std::string value = ahead->second;
    ahead_.erase(ahead);
    const auto at = state().values.find(value);
    const bool is_there = at != state().values.end();
    const int graph = is_there ? at->second.terms.front().graph : 0;
    if (is_there && state().graphs.at(graph).weights == engine_state().weights) return value;
  }
  Forward forward = this->forward();
  if (!add_forward(forward)) return std::nullopt;
  return forward.as;
}

std::vector<std::string> Scene::losses_of(const std::string& value) {
  if (model().losses() == 1) return {value};
  const std::string second = value + ".1";
  switch (source_.below(4)) {
    case 0:
      return {value, second};
    case 1:
      return {value};
    case 2:
      return {second};
    default:
      break;
  }
  const std::string sum = new_value();
  if (!add({Sum{.values = {value, second}, .as = sum}})) return {value};
  return {sum};
}

bool Scene::differentiate_managed(const std::string& value, Backward backward) {
  backward.engine = engine_;
  backward.value = value;
  return add({backward});
}

bool Scene::differentiate_manually(const std::string& value, bool retain_graph) {
  std::string root = value;
  if (needs_scaler()) {
    root = new_value();
    if (!add({Scale{.engine = engine_, .value = value, .as = root}})) return false;
  }
  Backward backward;
  backward.value = root;
  backward.retain_graph = retain_graph;
  return add({backward});
}

bool Scene::differentiate(const std::string& value, const Backward& backward) {
  const bool is_plain = !backward.create_graph && backward.scale_wrt_gas;
  const bool is_manual = is_plain && state().supports_manual_backward() &&
                         !state().backward_around() && policy_.is_manual && !source_.one_in(4);
  if (is_manual && differentiate_manually(value, backward.retain_graph)) return true;
  return differentiate_managed(value, backward);
}

bool Scene::differentiate_all(const std::string& value) {
  const std::vector<std::string> losses = losses_of(value);
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (!differentiate(losses[i], {.retain_graph = i + 1 < losses.size()})) return false;
  if (policy_.drops_losses && state().values.contains(value)) return drop(value);
  return true;
}

bool Scene::train() {
  const auto value = loss();
  return value && differentiate_all(*value);
}

bool Scene::drop(const std::string& value) {
  return add({Drop{.value = value}});
}

bool Scene::zero_grad_all() {
  const auto names = engines();
  return std::ranges::all_of(
      names, [&](const std::string& name) { return add({ZeroGrad{.engine = name}}); });
}

std::optional<std::string> Scene::some_hooked_module(const Forward& forward) {
  const ForwardFlow flow = flow_of(model(), {.frozen = engine_state().frozen,
                                             .inputs_need_grad = forward.inputs_need_grad,
                                             .expert = forward.expert});
  std::vector<std::string> names;
  for (const Module* const node : nodes_of(model()))
    if (can_hook(*node) && flow.passes.contains(node->name)) names.push_back(node->name);
  if (names.empty()) return std::nullopt;
  return names[source_.below(static_cast<std::uint32_t>(names.size()))];
}

std::optional<std::string> Scene::some_owner(bool is_trained) {
  std::vector<std::string> names;
  for (const Module* const owner : weight_owners(model()))
    if (!is_trained || has_trained_weight(*owner)) names.push_back(owner->name);
  if (names.empty()) return std::nullopt;
  return names[source_.below(static_cast<std::uint32_t>(names.size()))];
}

bool Scene::train_with_hook(Body body) {
  Forward forward = this->forward();
  const auto module = some_hooked_module(forward);
  if (!module) return false;
  forward.hooks.push_back(hook(Hook::At::gradient, *module, std::move(body)));
  return add_forward(forward) && differentiate_all(forward.as);
}

}  // namespace zeroproof::program

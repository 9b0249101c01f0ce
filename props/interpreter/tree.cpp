#include "props/interpreter/tree.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/check.h"
#include "props/interpreter/layer_modules.h"
#include "props/interpreter/tree_containers.h"
#include "props/program/forward_flow.h"
#include "props/train/subject.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::program {
namespace {

std::shared_ptr<const ForwardPlan> plain_plan() {
  static const auto kPlan = std::make_shared<const ForwardPlan>();
  return kPlan;
}

// How a module takes what it computes with.
struct Arguments {
  int activations = 1;
  bool closes_over_factor = false;
};

Arguments arguments_of(const Module& leaf) {
  if (const auto* const linear = std::get_if<Linear>(&leaf.kind))
    return {linear->activations, linear->closes_over_factor};
  if (const auto* const custom = std::get_if<Custom>(&leaf.kind))
    return {custom->activations, custom->closes_over_factor};
  return {};
}

}  // namespace

Tree::Tree(const Model& model, const UseTable& table, const TreeOptions& options)
    : model_(model), table_(table), options_(options), init_(options.seed), plan_(plain_plan()) {}

// --- building -----------------------------------------------------------------------------------

void Tree::build(const ModuleList& list, nn::Module& around) {
  for (const Module& node : list) build_node(node, around);
}

void Tree::build_node(const Module& node, nn::Module& around) {
  const auto add = [&](std::shared_ptr<nn::Module> made) {
    modules_[node.name] = around.register_module(node.name, std::move(made));
  };
  if (const auto* const linear = std::get_if<Linear>(&node.kind)) {
    add(make_linear(init_, *linear,
                    {.is_real = options_.is_real, .seen = &seen_, .closed = &closed_}));
    freeze(node, *modules_[node.name]);
  } else if (const auto* const custom = std::get_if<Custom>(&node.kind)) {
    add(make_custom(init_, *custom, {.seen = &seen_, .closed = &closed_}));
    freeze(node, *modules_[node.name]);
  } else if (const auto* const own = std::get_if<OwnWeight>(&node.kind)) {
    own_[node.name] = &around.register_parameter(
        node.name, init_.kaiming({own->elements}, own->elements, DType::float32));
  } else if (const auto* const experts = std::get_if<Experts>(&node.kind)) {
    add(make_experts(init_, *experts, expert_));
  } else if (const auto* const tied = std::get_if<Tied>(&node.kind)) {
    add(make_tied(weight_of(tied->module)));
  } else if (const auto* const external = std::get_if<ExternalUse>(&node.kind)) {
    if (external->when == ReadWhen::in_a_module)
      add(make_reader(owner_of(external->module), external->is_registered,
                      external->watches_use ? &seen_ : nullptr));
  } else if (const auto* const sequential = std::get_if<Sequential>(&node.kind)) {
    add(make_sequence(*this, sequential->body));
    build(sequential->body, *modules_[node.name]);
  } else if (const ModuleList* const body = body_of(node)) {
    build(*body, around);
  }
}

void Tree::freeze(const Module& node, nn::Module& module) const {
  const Trained trained = trained_of(node);
  for (const nn::NamedParameter& named : module.named_parameters())
    if (trained == Trained::frozen ||
        (trained == Trained::bias_only && named.name.ends_with("weight")))
      named.tensor.set_requires_grad(false);
}

nn::Module* Tree::module_of(const std::string& node) const {
  const auto at = modules_.find(node);
  return at == modules_.end() ? nullptr : at->second.get();
}

nn::Module& Tree::owner_of(const std::string& node) const {
  nn::Module* const owner = module_of(node);
  ZP_CHECK(owner, "a reference names a module that is registered before");
  return *owner;
}

Tensor Tree::weight_of(const std::string& node) const {
  if (const auto own = own_.find(node); own != own_.end()) return *own->second;
  for (const nn::NamedParameter& named : owner_of(node).named_parameters()) return named.tensor;
  return {};
}

void Tree::arm(std::shared_ptr<const ForwardPlan> plan) {
  for (HookHandle& hook : weight_hooks_) hook.remove();
  weight_hooks_.clear();
  plan_ = std::move(plan);
  expert_ = plan_->expert;
  if (!plan_->hooks) return;
  for (const Hook& hook : *plan_->hooks) {
    if (hook.at != Hook::At::weight) continue;
    weight_hooks_.push_back(
        weight_of(hook.module).register_hook([plan = plan_, &hook](const Tensor&) -> Tensor {
          plan->run_hook(hook);
          return {};
        }));
  }
}

// --- running ------------------------------------------------------------------------------------

void Tree::begin(const ModuleList& body) {
  held_.clear();
  for (const Module& node : body) {
    const auto* const external = std::get_if<ExternalUse>(&node.kind);
    const bool is_skipped = std::ranges::find(plan_->skipped, node.name) != plan_->skipped.end();
    if (external && external->when == ReadWhen::held && !is_skipped)
      held_[node.name] = read_weight(owner_of(external->module), external->is_registered);
  }
}

Tensor Tree::run(Autograd& ag, const ModuleList& list, const Tensor& h, const TensorList& given) {
  Tensor now = h;
  for (const Module& node : list) {
    const bool is_skipped = std::ranges::find(plan_->skipped, node.name) != plan_->skipped.end();
    if (is_skipped || std::holds_alternative<Unused>(node.kind)) continue;
    now = node.name == plan_->spiked ? run_spiked(ag, node, now, given)
                                     : run_node(ag, node, now, given);
    now = with_hooks(ag, node, now);
  }
  return now;
}

// What the node adds to the activations takes the spike alone.
Tensor Tree::run_spiked(Autograd& ag, const Module& node, const Tensor& h,
                        const TensorList& given) {
  const Tensor zeros = Tensor::full(h.sizes(), 0.0, h.dtype()).on(h.device());
  return add(ag, h, overflowing(ag, run_node(ag, node, zeros, given), plan_->spike));
}

Tensor Tree::run_node(Autograd& ag, const Module& node, const Tensor& h, const TensorList& given) {
  return std::visit([&](const auto& kind) { return run_kind(ag, node, kind, h, given); },
                    node.kind);
}

template <class Kind>
Tensor Tree::run_kind(Autograd& ag, const Module& node, const Kind& kind, const Tensor& h,
                      const TensorList& given) {
  const auto factor = [&] { return given.at(1 + table_.of(node.name).first); };
  if constexpr (std::is_same_v<Kind, Linear> || std::is_same_v<Kind, Custom> ||
                std::is_same_v<Kind, Experts>) {
    return run_leaf(ag, node, table_.of(node.name), h, given);
  } else if constexpr (std::is_same_v<Kind, Shared>) {
    return run_leaf(ag, *find_module(model_, kind.module), table_.of(node.name), h, given);
  } else if constexpr (std::is_same_v<Kind, Tied>) {
    return owner_of(node.name)(ag, TensorList{h, factor()}).at(0);
  } else if constexpr (std::is_same_v<Kind, OwnWeight>) {
    return add_use(ag, h, factor(), *own_.at(node.name));
  } else if constexpr (std::is_same_v<Kind, ExternalUse>) {
    if (kind.when == ReadWhen::in_a_module)
      return owner_of(node.name)(ag, TensorList{h, factor()}).at(0);
    const Tensor weight = kind.when == ReadWhen::held
                              ? held_.at(node.name)
                              : read_weight(owner_of(kind.module), kind.is_registered);
    return add_use(ag, h, factor(), weight, kind.watches_use ? &seen_ : nullptr);
  } else if constexpr (std::is_same_v<Kind, Sequential>) {
    TensorList inputs = given;
    inputs.front() = h;
    return owner_of(node.name)(ag, inputs).at(0);
  } else if constexpr (std::is_same_v<Kind, Checkpoint>) {
    return run_checkpoint(ag, node, kind, h, given);
  } else if constexpr (std::is_same_v<Kind, Tiled>) {
    return run_tiles(ag, node, kind, h, given);
  } else {
    return h;  // Unused
  }
}

// A module that is called with the factors of its uses; a weight that it returns is used here.
Tensor Tree::run_leaf(Autograd& ag, const Module& leaf, const UseTable::Range& range,
                      const Tensor& h, const TensorList& given) {
  const auto begin = given.begin() + 1 + static_cast<std::ptrdiff_t>(range.first);
  return call_leaf(ag, leaf, h, {begin, begin + static_cast<std::ptrdiff_t>(range.count)});
}

Tensor Tree::call_leaf(Autograd& ag, const Module& leaf, const Tensor& h,
                       const TensorList& factors) {
  const Arguments arguments = arguments_of(leaf);
  TensorList inputs = {h};
  if (arguments.activations > 1) inputs.push_back(mul(ag, h, 1.0));
  if (arguments.activations > 2) inputs.emplace_back();
  if (arguments.closes_over_factor)
    closed_ = factors;
  else
    inputs.insert(inputs.end(), factors.begin(), factors.end());
  const TensorList outputs = owner_of(leaf.name)(ag, inputs);
  return outputs.size() < 2 ? outputs.at(0)
                            : add_use(ag, outputs.at(0), factors.back(), outputs.at(1));
}

Tensor Tree::call(Autograd& ag, const std::string& module, const TensorList& inputs) {
  const Module& leaf = *find_module(model_, module);
  return mean(ag, call_leaf(ag, leaf, inputs.at(0), {inputs.begin() + 1, inputs.end()}));
}

Tensor Tree::run_checkpoint(Autograd& ag, const Module& node, const Checkpoint& spec,
                            const Tensor& h, const TensorList& given) {
  TensorList inputs = given;
  inputs.front() = h;
  const auto has_run = std::make_shared<bool>(false);
  const auto body = [this, &ag, &node, &spec, has_run, plan = plan_](const TensorList& again) {
    const bool is_recompute = std::exchange(*has_run, true);
    const RecomputeScope scope(plan_, plan, is_recomputing_, is_recompute || is_recomputing_);
    const auto once = [&] { return TensorList{run(ag, spec.body, again.at(0), again)}; };
    const train::Subject* const subject = options_.subject;
    const auto decorated = [&] {
      return subject && subject->recompute && is_recompute ? subject->recompute(ag, once) : once();
    };
    return options_.watch ? options_.watch->run_checkpoint(node.name, decorated) : decorated();
  };
  const CheckpointKind kind =
      spec.is_reentrant ? CheckpointKind::reentrant : CheckpointKind::non_reentrant;
  return checkpoint(ag, kind, body, inputs).at(0);
}

// --- hooks --------------------------------------------------------------------------------------

Tensor Tree::hooked(Autograd& ag, const Tensor& x, const Hook& hook) const {
  return interrupted(ag, x, [plan = plan_, &hook] { plan->run_hook(hook); });
}

Tensor Tree::with_hooks(Autograd& ag, const Module& node, const Tensor& h) {
  Tensor now = h;
  if (!plan_->hooks) return now;
  for (const Hook& hook : *plan_->hooks) {
    if (hook.module != node.name) continue;
    if (hook.at == Hook::At::gradient) now = hooked(ag, now, hook);
    if (hook.at == Hook::At::forward && !is_recomputing_) plan_->run_hook(hook);
  }
  return now;
}

}  // namespace zeroproof::program

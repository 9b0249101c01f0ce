#include "props/interpreter/tree_module.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "props/interpreter/tree.h"
#include "props/interpreter/tree_containers.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::program {
namespace {

class Sequence final : public nn::Module {
 public:
  Sequence(Tree& tree, const ModuleList& body) : tree_(tree), body_(body) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {tree_.run(ag, body_, inputs.at(0), inputs)};
  }

 private:
  Tree& tree_;
  const ModuleList& body_;
};

bool is_tiled(const Model& model) {
  return !model.body.empty() && std::holds_alternative<Tiled>(model.body.back().kind);
}

}  // namespace

std::shared_ptr<nn::Module> make_sequence(Tree& tree, const ModuleList& body) {
  return std::make_shared<Sequence>(tree, body);
}

TreeModule::TreeModule(const Model& model, const UseTable& table, const TreeOptions& options)
    : model_(model), tree_(std::make_unique<Tree>(model, table, options)) {
  tree_->build(model.body, *this);
  for (const ModuleList& head : model.heads) tree_->build(head, *this);
}

TreeModule::~TreeModule() = default;

void TreeModule::arm(std::shared_ptr<const ForwardPlan> plan) {
  tree_->arm(std::move(plan));
}

Tensor TreeModule::call(Autograd& ag, const std::string& module, const TensorList& inputs) const {
  return tree_->call(ag, module, inputs);
}

Tensor TreeModule::use_weight(Autograd& ag, const std::string& module,
                              const TensorList& inputs) const {
  const Tensor weight = weight_of(module);
  // The factor of a Linear is that of its output for the identity: the weight's, transposed.
  const Shape& sizes = weight.sizes();
  Tensor factor = inputs.at(1);
  if (sizes.size() == 2 && factor.sizes() != sizes)
    factor = factor.numel() == weight.numel() ? t(ag, reshape(ag, factor, {sizes[1], sizes[0]}))
                                              : reshape(ag, factor, {sizes[0], 1});
  return mean(ag, add(ag, inputs.at(0), sum(ag, mul(ag, factor, weight))));
}

nn::Module* TreeModule::module_of(const std::string& node) const {
  return tree_->module_of(node);
}

Tensor TreeModule::weight_of(const std::string& node) const {
  return tree_->weight_of(node);
}

std::vector<double> TreeModule::take_seen() {
  SeenGradients seen = std::exchange(tree_->seen(), {});
  const auto is_less = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  std::ranges::sort(seen, [&](const auto& a, const auto& b) {
    return std::ranges::lexicographical_compare(a, b, is_less);
  });
  std::vector<double> all;
  for (const std::vector<double>& one : seen) all.insert(all.end(), one.begin(), one.end());
  return all;
}

nn::Module::OutputContainer TreeModule::output_container() const {
  if (model_.container == Container::dict) return OutputContainer::dict;
  if (model_.container == Container::dataclass) return OutputContainer::dataclass;
  return OutputContainer::tensors;
}

TensorList TreeModule::forward(Autograd& ag, const TensorList& inputs) const {
  tree_->begin(model_.body);
  const Tensor h = tree_->run(ag, model_.body, inputs.at(0), inputs);
  TensorList outputs;
  if (model_.has_constant_output) outputs.push_back(mean(ag, h.detach()));
  if (is_tiled(model_)) {
    outputs.push_back(h);
  } else if (model_.heads.empty()) {
    outputs.push_back(mean(ag, h));
  }
  for (std::size_t i = 0; i < model_.heads.size(); ++i)
    outputs.push_back(mul(ag, mean(ag, tree_->run(ag, model_.heads[i], h, inputs)),
                          std::ldexp(1.0, static_cast<int>(i))));
  if (model_.added_to_loss != 0.0)
    for (Tensor& loss : outputs) loss = add(ag, loss, model_.added_to_loss);
  if (model_.returns_activations)
    outputs.push_back(is_tiled(model_) ? expand(ag, reshape(ag, h, {1}), {2}) : h);
  if (model_.container == Container::dict) outputs.emplace_back();
  return outputs;
}

}  // namespace zeroproof::program

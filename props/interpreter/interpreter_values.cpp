// What statements name and show.
#include "model/check.h"
#include "props/interpreter/interpreter.h"

namespace zeroproof::program {

std::size_t Interpreter::index_of(const std::string& engine) const {
  for (std::size_t i = 0; i < program_.engines.size(); ++i)
    if (program_.engines[i].name == engine) return i;
  ZP_CHECK(false, "a statement names an engine of the program");
}

Interpreter::Value& Interpreter::value(const std::string& name) {
  const auto at = values_.find(name);
  ZP_CHECK(at != values_.end(), "a statement names a value that an earlier one gave");
  return at->second;
}

void Interpreter::see(Observed what, const std::string& name, const Tensor& tensor) {
  seen_.push_back({what, name, tensor.sizes(), tensor.values()});
}

void Interpreter::see(Observed what, const std::string& name, double number) {
  seen_.push_back({what, name, {}, {number}});
}

void Interpreter::see_loss(const std::string& name, const Tensor& loss, bool is_rounded) {
  see(Observed::loss, name, loss);
  seen_.back().is_unspecified = is_rounded;
}

TensorList Interpreter::placed(TensorList inputs) const {
  if (!target_.device().is_cpu())
    for (Tensor& input : inputs) input = input.on(target_.device());
  return inputs;
}

void Interpreter::make_leaf(const Tensor& input) {
  input.set_requires_grad(true);
  if (creates_graphs_) leaves_.push_back(input);
}

TensorList Interpreter::next_inputs(const std::string& engine) {
  return placed(data_.inputs(engine, slots_[index_of(engine)]++, role()));
}

}  // namespace zeroproof::program

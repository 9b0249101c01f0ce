// Function transforms through the engine, each followed by an ordinary step.
#include "model/transforms/transforms.h"
#include "props/train/programs.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {
namespace {

constexpr std::int64_t kExamples = 3;

// The engine's forward, as a function of its inputs.
func::Function forward_of(Pass& pass) {
  return
      [&pass](const TensorList& args) { return TensorList{pass.target().forward(0, args).at(0)}; };
}

func::Function loss_of(Pass& pass) {
  return [&pass, forward = forward_of(pass)](const TensorList& args) {
    return TensorList{pass.loss_of(forward(args))};
  };
}

// With respect to the last input: x itself, or with exact data the factor of the parameters.
constexpr std::int64_t kLast = -1;

void record(Pass& pass, const std::string& name, const TensorList& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    pass.target().record("func/" + name + "/" + std::to_string(i), values[i]);
}

void train_on(Pass& pass) {
  pass.differentiate(pass.loss_of(pass.target().forward(0, pass.next_inputs())));
  pass.step();
}

}  // namespace

void func_grad_window(Pass& pass) {
  const auto grad = func::grad(pass.autograd(), loss_of(pass), {kLast});
  record(pass, "grad", grad(pass.next_inputs()));
  train_on(pass);
}

void func_grad_and_value_window(Pass& pass) {
  func::GradOptions options;
  options.argnums = {kLast};
  const func::GradAndValue made =
      func::grad_and_value(pass.autograd(), loss_of(pass), pass.next_inputs(), options);
  record(pass, "grad", made.grads);
  record(pass, "value", {made.value});
  train_on(pass);
}

void func_jacrev_window(Pass& pass) {
  const auto jacobian = func::jacrev(pass.autograd(), forward_of(pass), {kLast});
  record(pass, "jacrev", jacobian(pass.next_inputs()));
  train_on(pass);
}

void func_vmap_window(Pass& pass) {
  const auto mapped = func::vmap(pass.autograd(), forward_of(pass));
  record(pass, "vmap", mapped(pass.next_batch(kExamples)));
  train_on(pass);
}

void func_vmap_grad_window(Pass& pass) {
  const auto grad = func::grad(pass.autograd(), loss_of(pass), {kLast});
  const auto mapped = func::vmap(pass.autograd(), grad);
  record(pass, "vmap_grad", mapped(pass.next_batch(kExamples)));
  train_on(pass);
}

}  // namespace zeroproof::train

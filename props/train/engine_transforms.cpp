#include "props/train/engine_transforms.h"

#include "model/transforms/transforms.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {
namespace {

// Two factors: the gradient of each one's loss, and of the sum of a batch's losses.
void transform_examples(Pass& pass, const func::Function& loss, const TensorList& inputs) {
  Autograd& ag = pass.autograd();
  const Tensor& c = inputs.at(1);
  const Tensor examples = stack(ag, {c, mul(ag, c, 2.0)}, 0);
  const auto with = [&](const func::Function& f) -> func::Function {
    return [&inputs, f](const TensorList& one) { return f({inputs.at(0), one.at(0)}); };
  };
  const func::Function of_each = func::vmap(ag, with(func::grad(ag, loss, {-1})));
  pass.target().record("func/vmap", of_each({examples}).at(0));
  const func::Function losses = func::vmap(ag, with(loss));
  const func::Function total = [&](const TensorList& batch) {
    return TensorList{sum(ag, losses(batch).at(0))};
  };
  pass.target().record("func/grad", func::grad(ag, total)({examples}).at(0));
}

}  // namespace

void transform_engine(const MicroSpec& micro, Pass& pass) {
  const func::Function loss = [&](const TensorList& inputs) {
    return TensorList{pass.target().forward(0, inputs).at(0)};
  };
  const TensorList inputs = pass.next_inputs();
  if (micro.idle_forward == 4) return transform_examples(pass, loss, inputs);
  const TensorList grads = func::grad(pass.autograd(), loss, {-1})(inputs);
  pass.target().record("func/grad", grads.at(0));
}

}  // namespace zeroproof::train

#include "props/interpreter/user_backward.h"

#include "model/custom_function.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::program {
namespace {

// x, whose backward does `on_gradient` to what comes.
Tensor with_backward(Autograd& ag, const char* name, const Tensor& x,
                     const std::function<Tensor(const Tensor&)>& on_gradient) {
  const CustomFunction function{name,
                                [&ag](FunctionContext&, const TensorList& given) {
                                  return TensorList{mul(ag, given.at(0), 1.0)};
                                },
                                [on_gradient](FunctionContext&, const TensorList& grads) {
                                  return TensorList{on_gradient(grads.at(0))};
                                }};
  return apply_function(ag, function, {x}).at(0);
}

}  // namespace

Tensor interrupted(Autograd& ag, const Tensor& x, const std::function<void()>& run) {
  return with_backward(ag, "UserBackward", x, [&ag, run](const Tensor& grad) {
    run();
    return mul(ag, grad, 1.0);
  });
}

Tensor overflowing(Autograd& ag, const Tensor& x, double factor) {
  return with_backward(ag, "OverflowBackward", x,
                       [&ag, factor](const Tensor& grad) { return mul(ag, grad, factor); });
}

Tensor watched(Autograd& ag, const Tensor& x, SeenGradients& seen) {
  return with_backward(ag, "WatchBackward", x, [&ag, &seen](const Tensor& grad) {
    seen.push_back(grad.values());
    return mul(ag, grad, 1.0);
  });
}

}  // namespace zeroproof::program

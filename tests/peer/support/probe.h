#pragma once

#include <functional>

#include "model/custom_function.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof::peer {

// x itself; `look` runs in its backward, and may throw.
inline Tensor probe(Autograd& ag, const Tensor& x, std::function<void()> look) {
  const CustomFunction function{
      .name = "ProbeBackward",
      .forward = [](FunctionContext&, const TensorList& inputs) -> TensorList {
        return {inputs.at(0).detach()};
      },
      .backward =
          [look = std::move(look)](FunctionContext&, const TensorList& grads) {
            look();
            return grads;
          }};
  return apply_function(ag, function, {x}).at(0);
}

}  // namespace zeroproof::peer

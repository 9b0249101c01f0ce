// One dimension to another place.
#include <utility>

#include "model/functions/rules.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof {
namespace {

using Inputs = const TensorList&;
using Args = const OpArgs&;

extern const Op kMovedim;

Shape moved(Shape shape, const OpArgs& args) {
  const std::int64_t value = shape.at(static_cast<std::size_t>(args.dim));
  shape.erase(shape.begin() + args.dim);
  shape.insert(shape.begin() + args.other_dim, value);
  return shape;
}

const Op kMovedim = {
    .name = "PermuteBackward0",
    .forward =
        [](const Ops&, Inputs in, Args args) {
          const Tensor& x = in[0];
          return TensorList{x.as_strided(moved(x.sizes(), args), moved(x.strides(), args),
                                         x.impl().offset_elements)};
        },
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{movedim(ag, grads[0], node.args.other_dim, node.args.dim)};
        },
    .batch =
        [](Autograd& ag, const BatchedInputs& in, Args args) {
          return TensorList{movedim(ag, in.tensors[0], args.dim + 1, args.other_dim + 1)};
        },
    .jvp = rules::jvp_linear<kMovedim>};

}  // namespace

Tensor movedim(Autograd& ag, const Tensor& x, std::int64_t from, std::int64_t to) {
  return apply_one(ag, kMovedim, {x}, {.dim = from, .other_dim = to});
}

}  // namespace zeroproof

#include "model/functions/scalars.h"

#include "model/functions/rules.h"

namespace zeroproof {
namespace {

using rules::batch_elementwise;
using rules::jvp_linear;

using Inputs = const TensorList&;
using Args = const OpArgs&;

extern const Op kAddScalar;
extern const Op kMulScalar;
extern const Op kDivScalar;

template <BinaryOp op>
TensorList with_number(const Ops& ops, Inputs in, Args args) {
  return {ops.binary(op, in[0], Tensor::number(args.scalar, in[0].dtype()))};
}

const Op kAddScalar = {
    .name = "AddBackward1",
    .forward = with_number<BinaryOp::add>,
    .backward = [](Autograd&, OpNode&, Inputs grads) { return TensorList{grads[0]}; },
    .batch = batch_elementwise<kAddScalar>,
    .jvp = [](Autograd&, Inputs, Inputs tangents, Inputs,
              Args) { return TensorList{tangents[0]}; }};

const Op kMulScalar = {
    .name = "MulBackward1",
    .forward = with_number<BinaryOp::mul>,
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{mul_scalar(ag, grads[0], node.args.scalar)}; },
    .batch = batch_elementwise<kMulScalar>,
    .jvp = jvp_linear<kMulScalar>};

const Op kDivScalar = {
    .name = "DivBackward1",
    .forward = with_number<BinaryOp::div>,
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{div_scalar(ag, grads[0], node.args.scalar)}; },
    .batch = batch_elementwise<kDivScalar>,
    .jvp = jvp_linear<kDivScalar>};

}  // namespace

Tensor add_scalar(Autograd& ag, const Tensor& x, double number) {
  return apply_one(ag, kAddScalar, {x}, {.scalar = number});
}

Tensor mul_scalar(Autograd& ag, const Tensor& x, double number) {
  return apply_one(ag, kMulScalar, {x}, {.scalar = number});
}

Tensor div_scalar(Autograd& ag, const Tensor& x, double number) {
  return apply_one(ag, kDivScalar, {x}, {.scalar = number});
}

}  // namespace zeroproof

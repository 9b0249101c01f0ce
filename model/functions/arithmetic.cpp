// Arithmetic of two tensors with broadcasting, and copies.
#include "model/functions/rules.h"
#include "model/functions/scalars.h"

namespace zeroproof {
namespace {

using rules::add_tangents;
using rules::batch_elementwise;
using rules::batch_pointwise;
using rules::binary;
using rules::jvp_linear;
using rules::times;
using rules::unary;

using Inputs = const TensorList&;
using Args = const OpArgs&;

// What each input's gradient needs: the other factor. In PyTorch's order, as in every operation
// here: it is where a non-reentrant checkpoint counts them, and how hooks see them (rule S4).
void save_factors(OpNode& node, Inputs in) {
  node.save(node.needs(0) ? in[1] : Tensor());
  node.save(node.needs(1) ? in[0] : Tensor());
}

extern const Op kAdd;
extern const Op kSub;
extern const Op kMul;
extern const Op kDiv;
extern const Op kNeg;
extern const Op kClone;
extern const Op kToCopy;

// The gradient that a broadcast input gets is summed down when it is delivered (rule E5).
const Op kAdd = {.name = "AddBackward0",
                 .forward_one = binary<BinaryOp::add>,
                 .backward =
                     [](Autograd&, OpNode& node, Inputs grads) {
                       return TensorList{node.needs(0) ? grads[0] : Tensor(),
                                         node.needs(1) ? grads[0] : Tensor()};
                     },
                 .batch = batch_pointwise<kAdd>,
                 .jvp =
                     [](Autograd& ag, Inputs, Inputs tangents, Inputs outputs, Args) {
                       const Tensor sum = add_tangents(ag, tangents[0], tangents[1]);
                       return TensorList{expand(ag, sum, outputs[0].sizes())};
                     }};

const Op kSub = {.name = "SubBackward0",
                 .forward_one = binary<BinaryOp::sub>,
                 .backward =
                     [](Autograd& ag, OpNode& node, Inputs grads) {
                       TensorList out(2);
                       if (node.needs(1)) out[1] = neg(ag, grads[0]);
                       if (node.needs(0)) out[0] = grads[0];
                       return out;
                     },
                 .batch = batch_pointwise<kSub>,
                 .jvp =
                     [](Autograd& ag, Inputs, Inputs tangents, Inputs outputs, Args) {
                       const Tensor& right = tangents[1];
                       const Tensor sum = add_tangents(ag, tangents[0],
                                                       right.is_defined() ? neg(ag, right) : right);
                       return TensorList{expand(ag, sum, outputs[0].sizes())};
                     }};

const Op kMul = {.name = "MulBackward0",
                 .forward_one = binary<BinaryOp::mul>,
                 .save = save_factors,
                 .backward =
                     [](Autograd& ag, OpNode& node, Inputs grads) {
                       TensorList out(2);
                       const Tensor right = node.saved(0);
                       const Tensor left = node.saved(1);
                       if (node.needs(1)) out[1] = mul(ag, grads[0], left);
                       if (node.needs(0)) out[0] = mul(ag, grads[0], right);
                       return out;
                     },
                 .batch = batch_pointwise<kMul>,
                 .jvp =
                     [](Autograd& ag, Inputs in, Inputs tangents, Inputs, Args) {
                       return TensorList{add_tangents(ag, times(ag, tangents[0], in[1]),
                                                      times(ag, tangents[1], in[0]))};
                     }};

const Op kDiv = {.name = "DivBackward0",
                 .forward_one = binary<BinaryOp::div>,
                 .save =
                     [](OpNode& node, Inputs in) {
                       node.save(in[1]);
                       node.save(node.needs(1) ? in[0] : Tensor());
                     },
                 .backward =
                     [](Autograd& ag, OpNode& node, Inputs grads) {
                       TensorList out(2);
                       const Tensor divisor = node.saved(0);
                       if (node.needs(1)) {
                         const Tensor quotient = div(ag, div(ag, node.saved(1), divisor), divisor);
                         out[1] = mul(ag, neg(ag, grads[0]), quotient);
                       }
                       if (node.needs(0)) out[0] = div(ag, grads[0], divisor);
                       return out;
                     },
                 .batch = batch_pointwise<kDiv>,
                 .jvp =
                     [](Autograd& ag, Inputs in, Inputs tangents, Inputs outputs, Args) {
                       const Tensor& right = tangents[1];
                       const Tensor change =
                           right.is_defined() ? neg(ag, mul(ag, right, outputs[0])) : right;
                       return TensorList{div(ag, add_tangents(ag, tangents[0], change), in[1])};
                     }};

const Op kNeg = {
    .name = "NegBackward0",
    .forward_one = unary<UnaryOp::neg>,
    .backward = [](Autograd& ag, OpNode&, Inputs grads) { return TensorList{neg(ag, grads[0])}; },
    .batch = batch_elementwise<kNeg>,
    .jvp = jvp_linear<kNeg>};

const Op kClone = {
    .name = "CloneBackward0",
    .forward = [](const Ops& ops, Inputs in,
                  Args) { return TensorList{ops.cast(in[0], in[0].dtype())}; },
    .backward = [](Autograd&, OpNode&, Inputs grads) { return TensorList{grads[0]}; },
    .batch = batch_elementwise<kClone>,
    .jvp = jvp_linear<kClone>};

const Op kToCopy = {
    .name = "ToCopyBackward0",
    .forward = [](const Ops& ops, Inputs in,
                  Args args) { return TensorList{ops.cast(in[0], args.dtype)}; },
    .save = [](OpNode& node, Inputs in) { node.args.dtype = in[0].dtype(); },
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{to(ag, grads[0], node.args.dtype)}; },
    .batch = batch_elementwise<kToCopy>,
    .jvp = jvp_linear<kToCopy>};

Tensor number_like(const Tensor& x, double value) {
  return Tensor::number(value, x.dtype());
}

}  // namespace

Tensor add(Autograd& ag, const Tensor& a, const Tensor& b) {
  return apply_one(ag, kAdd, {a, b});
}
Tensor add(Autograd& ag, const Tensor& a, double b) {
  return add(ag, a, number_like(a, b));
}
Tensor sub(Autograd& ag, const Tensor& a, const Tensor& b) {
  return apply_one(ag, kSub, {a, b});
}
Tensor mul(Autograd& ag, const Tensor& a, const Tensor& b) {
  return apply_one(ag, kMul, {a, b});
}
Tensor mul(Autograd& ag, const Tensor& a, double b) {
  return mul(ag, a, number_like(a, b));
}
Tensor div(Autograd& ag, const Tensor& a, const Tensor& b) {
  return apply_one(ag, kDiv, {a, b});
}
Tensor div(Autograd& ag, const Tensor& a, double b) {
  return div(ag, a, number_like(a, b));
}
Tensor neg(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kNeg, {x});
}
Tensor clone(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kClone, {x});
}
Tensor to(Autograd& ag, const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : apply_one(ag, kToCopy, {x}, {.dtype = dtype});
}

}  // namespace zeroproof

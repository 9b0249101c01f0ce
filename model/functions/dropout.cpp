#include <fmt/format.h>

#include "model/functions/rules.h"
#include "zeroproof/internal/model/transforms/transform_frame.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

using Inputs = const TensorList&;
using Args = const OpArgs&;

// args.scalar: by what the elements that stay are multiplied.
Tensor scaled_mask(Autograd& ag, const Tensor& mask, double scale) {
  const GradMode no_grad(ag, false);
  return mul(ag, mask, scale);
}

// What accelerators do in one kernel: x and the mask.
const Op kNativeDropout = {
    .name = "NativeDropoutBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          const Tensor scale = Tensor::number(args.scalar, in[0].dtype());
          return TensorList{
              ops.binary(BinaryOp::mul, ops.binary(BinaryOp::mul, in[0], in[1]), scale)};
        },
    .save = [](OpNode& node, Inputs in) { node.save(in[1]); },
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          const Tensor mask = scaled_mask(ag, node.saved(0), node.args.scalar);
          return TensorList{mul(ag, grads[0], mask), Tensor()};
        },
    .jvp =
        [](Autograd& ag, Inputs in, Inputs tangents, Inputs outputs, Args args) {
          if (!tangents[0].is_defined())
            return TensorList{Tensor::full(outputs[0].sizes(), 0.0, outputs[0].dtype())};
          return TensorList{mul(ag, tangents[0], scaled_mask(ag, in[1], args.scalar))};
        }};

bool is_under_vmap(const Autograd& ag) {
  for (const TransformFrame* frame = ag.local().transforms.get(); frame; frame = frame->below.get())
    if (frame->kind == TransformKind::vmap) return true;
  return false;
}

// `kept` where an element stays, else 0.
Tensor draw_mask(Autograd& ag, const Tensor& x, double p, double kept) {
  if (is_under_vmap(ag))
    throw AutogradError("vmap: called random operation while in randomness error mode");
  const auto count = static_cast<std::size_t>(x.numel());
  std::vector<double> elements = ag.global().rng.uniforms(x.device(), count);
  for (double& element : elements) element = element < 1.0 - p ? kept : 0.0;
  return Tensor::of(elements, x.sizes(), x.dtype()).on(x.device());
}

}  // namespace

// Several operations on the CPU, one on an accelerator; none without randomness.
Tensor dropout(Autograd& ag, const Tensor& x, double p) {
  if (!(p >= 0.0 && p <= 1.0))
    throw AutogradError(
        fmt::format("dropout probability has to be between 0 and 1, but got {}", p));
  if (p == 0.0 || x.numel() == 0) return x;
  if (p == 1.0) return mul(ag, x, Tensor::full({}, 0.0, x.dtype()).on(x.device()));
  const double scale = 1.0 / (1.0 - p);
  if (x.device().is_cpu()) return mul(ag, x, draw_mask(ag, x, p, scale));
  return apply_one(ag, kNativeDropout, {x, draw_mask(ag, x, p, 1.0)}, {.scalar = scale});
}

}  // namespace zeroproof

// Softmax and its logarithm.
#include "model/functions/activations.h"
#include "model/functions/formula.h"
#include "model/functions/rules.h"

namespace zeroproof {
namespace {

using rules::Diff;
using rules::dim_of;
using rules::kept_sizes;
using rules::save_both;
using rules::with_batch;

using Inputs = const TensorList&;
using Args = const OpArgs&;

extern const Op kSoftmax;
extern const Op kSoftmaxBackward;
extern const Op kLogSoftmax;
extern const Op kLogSoftmaxBackward;

// Along a dimension that the batch shifts by one.
template <const Op& op>
TensorList batch_along(Autograd& ag, const BatchedInputs& in, Args args) {
  OpArgs shifted = args;
  ++shifted.dim;
  TensorList inputs;
  for (std::size_t i = 0; i < in.tensors.size(); ++i) inputs.push_back(with_batch(ag, in, i));
  return apply(ag, op, inputs, shifted);
}

// Minus the largest element, so that no exponential overflows.
Wide shifted_down(const Ops& ops, const Tensor& x, const Shape& kept) {
  const Wide wide = Wide::of(ops, x);
  return wide - max_to(wide, kept);
}

template <const Op& op>
Tensor backward_along(Autograd& ag, const Tensor& grad, const Tensor& output, std::int64_t dim) {
  return apply_one(ag, op, {grad, output}, {.dim = dim});
}

const Op kSoftmax = {
    .name = "SoftmaxBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          const Shape kept = kept_sizes(in[0], dim_of(in[0], args.dim));
          const Wide powers = exp(shifted_down(ops, in[0], kept));
          return TensorList{(powers / sum_to(powers, kept)).rounded(in[0].dtype())};
        },
    .saves_output = true,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{
              backward_along<kSoftmaxBackward>(ag, grads[0], node.saved(0), node.args.dim)};
        },
    .batch = batch_along<kSoftmax>,
    .jvp =
        [](Autograd& ag, Inputs, Inputs tangents, Inputs outputs, Args args) {
          return TensorList{
              backward_along<kSoftmaxBackward>(ag, tangents[0], outputs[0], args.dim)};
        },
    .cast = CastPolicy::float32};

const Op kSoftmaxBackward = {
    .name = "SoftmaxBackwardDataBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          const Shape kept = kept_sizes(in[0], dim_of(in[0], args.dim));
          const Wide grad = Wide::of(ops, in[0]);
          const Wide output = Wide::of(ops, in[1]);
          const Wide out = (grad - sum_to(grad * output, kept)) * output;
          return TensorList{out.rounded(in[1].dtype())};
        },
    .save = save_both,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          TensorList out(2);
          const Diff g{ag, grads[0]};
          const Diff output{ag, node.saved(1)};
          if (node.needs(0))
            out[0] = backward_along<kSoftmaxBackward>(ag, g.x, output.x, node.args.dim);
          if (node.needs(1)) {
            const Diff grad{ag, node.saved(0)};
            const Shape kept = kept_sizes(g.x, dim_of(g.x, node.args.dim));
            out[1] = (g * (grad - sum_to(grad * output, kept)) - sum_to(output * g, kept) * grad).x;
          }
          return out;
        },
    .batch = batch_along<kSoftmaxBackward>};

const Op kLogSoftmax = {
    .name = "LogSoftmaxBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          const Shape kept = kept_sizes(in[0], dim_of(in[0], args.dim));
          const Wide down = shifted_down(ops, in[0], kept);
          return TensorList{(down - log(sum_to(exp(down), kept))).rounded(in[0].dtype())};
        },
    .saves_output = true,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{
              backward_along<kLogSoftmaxBackward>(ag, grads[0], node.saved(0), node.args.dim)};
        },
    .batch = batch_along<kLogSoftmax>,
    .jvp =
        [](Autograd& ag, Inputs, Inputs tangents, Inputs outputs, Args args) {
          const Diff tangent{ag, tangents[0]};
          const Shape kept = kept_sizes(tangent.x, dim_of(tangent.x, args.dim));
          return TensorList{(tangent - sum_to(tangent * exp(Diff{ag, outputs[0]}), kept)).x};
        },
    .cast = CastPolicy::float32};

const Op kLogSoftmaxBackward = {
    .name = "LogSoftmaxBackwardDataBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          const Shape kept = kept_sizes(in[0], dim_of(in[0], args.dim));
          const Wide grad = Wide::of(ops, in[0]);
          const Wide out = grad - exp(Wide::of(ops, in[1])) * sum_to(grad, kept);
          return TensorList{out.rounded(in[1].dtype())};
        },
    .save = save_both,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          TensorList out(2);
          const Diff g{ag, grads[0]};
          const Diff weighted = g * exp(Diff{ag, node.saved(1)});
          const Shape kept = kept_sizes(g.x, dim_of(g.x, node.args.dim));
          if (node.needs(0)) out[0] = (g - sum_to(weighted, kept)).x;
          if (node.needs(1)) out[1] = (weighted * -1.0 * sum_to(Diff{ag, node.saved(0)}, kept)).x;
          return out;
        },
    .batch = batch_along<kLogSoftmaxBackward>};

}  // namespace

Tensor softmax(Autograd& ag, const Tensor& x, std::int64_t dim) {
  return apply_one(ag, kSoftmax, {x}, {.dim = dim});
}

Tensor log_softmax(Autograd& ag, const Tensor& x, std::int64_t dim) {
  return apply_one(ag, kLogSoftmax, {x}, {.dim = dim});
}

}  // namespace zeroproof

#include "model/functions/normalization.h"

#include <algorithm>

#include "model/functions/formula.h"
#include "model/functions/rules.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

using rules::batch_by_element;
using rules::Diff;

using Inputs = const TensorList&;
using Args = const OpArgs&;

extern const Op kLayerNorm;
extern const Op kLayerNormBackward;

void check_normalized(const Tensor& x, const Shape& normalized) {
  const Shape& sizes = x.sizes();
  if (!normalized.empty() && sizes.size() >= normalized.size() &&
      std::equal(normalized.rbegin(), normalized.rend(), sizes.rbegin()))
    return;
  throw AutogradError("layer_norm: the input does not end with the normalized shape");
}

void check_affine(const Tensor& weight, const Shape& normalized) {
  if (weight.is_defined() && weight.sizes() != normalized)
    throw AutogradError("Expected weight and bias to be of same shape as normalized_shape");
}

// The rows of a normalization: everything but the last dimensions.
struct Rows {
  Shape kept;    // sizes with 1 for the normalized dimensions
  double count;  // elements of a row

  Rows(const Shape& sizes, const Shape& normalized)
      : kept(sizes), count(static_cast<double>(numel(normalized))) {
    std::fill(kept.end() - static_cast<std::ptrdiff_t>(normalized.size()), kept.end(), 1);
  }
};

template <class T>
T row_mean(const T& x, const Rows& rows) {
  return sum_to(x, rows.kept) / rows.count;
}

// Rows of mean 0 and (up to eps) variance 1, and what they were divided by.
template <class T>
struct Normalized {
  T x;
  T inverse_deviation;
};

template <class T>
Normalized<T> normalize(const T& x, const Rows& rows, double eps) {
  const T centred = x - row_mean(x, rows);
  const T inverse = inverse_root(row_mean(centred * centred, rows) + eps);
  return {centred * inverse, inverse};
}

// The derivative of normalize(), which is symmetric: gradients of its result to those of its input.
template <class T>
T project(const T& grad, const Normalized<T>& in, const Rows& rows) {
  return (grad - row_mean(grad, rows) - in.x * row_mean(grad * in.x, rows)) * in.inverse_deviation;
}

// Inputs x, weight, bias; args.sizes: the normalized shape, args.scalar: eps.
const Op kLayerNorm = {.name = "NativeLayerNormBackward0",
                       .forward =
                           [](const Ops& ops, Inputs in, Args args) {
                             check_normalized(in[0], args.sizes);
                             check_affine(in[1], args.sizes);
                             check_affine(in[2], args.sizes);
                             const Rows rows(in[0].sizes(), args.sizes);
                             Wide out = normalize(Wide::of(ops, in[0]), rows, args.scalar).x;
                             if (in[1].is_defined()) out.x = (out * Wide::of(ops, in[1])).x;
                             if (in[2].is_defined()) out.x = (out + Wide::of(ops, in[2])).x;
                             return TensorList{out.rounded(in[0].dtype())};
                           },
                       .save =
                           [](OpNode& node, Inputs in) {
                             node.save(in[0]);
                             node.save(in[1]);
                             node.save(in[2]);
                           },
                       .backward =
                           [](Autograd& ag, OpNode& node, Inputs grads) {
                             OpArgs args = node.args;
                             args.index = 0;
                             for (std::size_t i = 0; i < 3; ++i)
                               args.index |= node.needs(i) ? 1 << i : 0;
                             // Edges 2 and 3 are upstream's mean and deviation, which no one
                             // differentiates.
                             const TensorList inputs = {grads[0], node.saved(0), {},
                                                        {},       node.saved(1), node.saved(2)};
                             const TensorList results = apply(ag, kLayerNormBackward, inputs, args);
                             TensorList out(3);
                             std::size_t next = 0;
                             for (std::size_t i = 0; i < 3; ++i)
                               if (node.needs(i)) out[i] = results[next++];
                             return out;
                           },
                       .batch = batch_by_element<kLayerNorm>,
                       .cast = CastPolicy::float32};

// The outputs that args.index names by its bits: gradients of x, weight and bias.
TensorList layer_norm_backward(const Ops& ops, Inputs in, Args args) {
  const Rows rows(in[1].sizes(), args.sizes);
  const Wide grad = Wide::of(ops, in[0]);
  const Normalized<Wide> normalized = normalize(Wide::of(ops, in[1]), rows, args.scalar);
  const Tensor& weight = in[4];
  TensorList out;
  if (args.index & 1) {
    const Tensor scaled = weight.is_defined() ? (grad * Wide::of(ops, weight)).x : grad.x;
    out.push_back(project(Wide{ops, scaled}, normalized, rows).rounded(in[1].dtype()));
  }
  if (args.index & 2)
    out.push_back(sum_to(grad * normalized.x, args.sizes).rounded(weight.dtype()));
  if (args.index & 4) out.push_back(sum_to(grad, args.sizes).rounded(in[5].dtype()));
  return out;
}

// What arrives for the gradients of x, weight and bias; undefined where no gradient does.
TensorList by_input(Inputs grads, Args args) {
  TensorList out(3);
  std::size_t next = 0;
  for (std::size_t i = 0; i < 3; ++i)
    if (args.index & (1 << i)) out[i] = grads[next++];
  return out;
}

Tensor plus(Autograd& ag, const Tensor& a, const Tensor& b) {
  return rules::add_tangents(ag, a, b);
}

// What the double backward is made of: x normalized, and grad * weight.
struct Second {
  Rows rows;
  Normalized<Diff> in;
  Diff grad;
  Diff scaled;
};

// Through the normalized x and through the deviation that divided it.
Tensor second_to_x(Autograd& ag, const Second& s, const Tensor& to_x, const Tensor& to_weight) {
  Tensor to_normalized = to_weight.is_defined() ? mul(ag, to_weight, s.grad.x) : Tensor();
  Tensor direct;
  if (to_x.is_defined()) {
    const Diff u{ag, to_x};
    const Diff u_along = row_mean(u * s.in.x, s.rows);
    const Diff grad_along = row_mean(s.scaled * s.in.x, s.rows);
    const Diff change = (u * grad_along + s.scaled * u_along) * s.in.inverse_deviation * -1.0;
    to_normalized = plus(ag, to_normalized, change.x);
    const Diff inner = row_mean(u * s.scaled, s.rows) -
                       row_mean(u, s.rows) * row_mean(s.scaled, s.rows) - u_along * grad_along;
    direct = (s.in.x * inner * s.in.inverse_deviation * s.in.inverse_deviation * -1.0).x;
  }
  if (!to_normalized.is_defined()) return direct;
  return plus(ag, project(Diff{ag, to_normalized}, s.in, s.rows).x, direct);
}

TensorList layer_norm_double_backward(Autograd& ag, OpNode& node, Inputs grads) {
  const TensorList to = by_input(grads, node.args);
  const Diff grad{ag, node.saved(0)};
  const Diff x{ag, node.saved(1)};
  const Tensor weight = node.saved(2);
  const Rows rows(x.x.sizes(), node.args.sizes);
  const Diff scaled{ag, weight.is_defined() ? mul(ag, grad.x, weight) : grad.x};
  const Second s{rows, normalize(x, rows, node.args.scalar), grad, scaled};
  const Tensor projected = to[0].is_defined() ? project(Diff{ag, to[0]}, s.in, rows).x : Tensor();
  TensorList out(6);
  if (node.needs(0)) {
    Tensor first = projected;
    if (first.is_defined() && weight.is_defined()) first = mul(ag, first, weight);
    const Tensor second = to[1].is_defined() ? mul(ag, to[1], s.in.x.x) : Tensor();
    out[0] = plus(ag, plus(ag, first, second), to[2]);
    if (out[0].sizes() != grad.x.sizes()) out[0] = expand(ag, out[0], grad.x.sizes());
  }
  if (node.needs(1)) out[1] = second_to_x(ag, s, to[0], to[1]);
  if (node.needs(4) && projected.is_defined())
    out[4] = sum_to(ag, mul(ag, projected, grad.x), node.args.sizes);
  return out;
}

const Op kLayerNormBackward = {.name = "NativeLayerNormBackwardBackward0",
                               .forward = layer_norm_backward,
                               .save =
                                   [](OpNode& node, Inputs in) {
                                     node.save(in[0]);
                                     node.save(in[1]);
                                     node.save(in[4]);
                                   },
                               .backward = layer_norm_double_backward,
                               .batch = batch_by_element<kLayerNormBackward>};

}  // namespace

Tensor layer_norm(Autograd& ag, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const LayerNormArgs& args) {
  return apply_one(ag, kLayerNorm, {x, weight, bias},
                   {.scalar = args.eps, .sizes = args.normalized});
}

Tensor rms_norm(Autograd& ag, const Tensor& x, const Tensor& weight, const LayerNormArgs& args) {
  check_normalized(x, args.normalized);
  check_affine(weight, args.normalized);
  std::vector<std::int64_t> dims;
  for (std::size_t d = x.sizes().size() - args.normalized.size(); d < x.sizes().size(); ++d)
    dims.push_back(static_cast<std::int64_t>(d));
  const DType wide = x.dtype() > DType::float32 ? DType::float32 : x.dtype();
  const Tensor input = to(ag, x, wide);
  const Tensor square = mean(ag, pow(ag, input, 2.0), dims, KeepDim::yes);
  Tensor out = mul(ag, input, rsqrt(ag, add_scalar(ag, square, args.eps)));
  if (weight.is_defined()) out = mul(ag, out, weight);
  return to(ag, out, x.dtype());
}

}  // namespace zeroproof

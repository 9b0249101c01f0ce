// Choices by a mask.
#include "model/functions/indexing.h"
#include "model/functions/rules.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

using Inputs = const TensorList&;
using Args = const OpArgs&;

extern const Op kMaskedFill;
extern const Op kWhere;

OpArgs args_of(const Mask& mask, double number) {
  OpArgs args = {.scalar = number, .sizes = mask.sizes};
  for (const bool is_set : mask.values) args.indices.push_back(is_set ? 1 : 0);
  if (std::cmp_not_equal(args.indices.size(), numel(mask.sizes)))
    throw AutogradError("a mask has as many elements as its sizes say");
  return args;
}

Mask mask_of(Args args) {
  Mask mask{{}, args.sizes};
  for (const std::int64_t element : args.indices) mask.values.push_back(element != 0);
  return mask;
}

// Elements of `a` where the mask of args is set, else of `b`; no arithmetic: infinities pass.
Tensor chosen(const Tensor& a, const Tensor& b, Args args) {
  const std::vector<double> mask(args.indices.begin(), args.indices.end());
  const Shape sizes = broadcast(broadcast(a.sizes(), b.sizes()), args.sizes);
  const std::vector<double> is_set = broadcast_to(Tensor::of(mask, args.sizes), sizes).values();
  const std::vector<double> left = broadcast_to(a, sizes).values();
  std::vector<double> out = broadcast_to(b, sizes).values();
  for (std::size_t i = 0; i < out.size(); ++i)
    if (is_set[i] != 0.0) out[i] = left[i];
  return Tensor::of(out, sizes, promote(a.dtype(), b.dtype()));
}

// The mask has no batch dimension: it meets the last ones.
template <const Op& op>
TensorList batch_masked(Autograd& ag, const BatchedInputs& in, Args args) {
  TensorList inputs = rules::padded_to_one_rank(ag, in);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (in.is_batched[i])
      while (inputs[i].sizes().size() < args.sizes.size() + 1)
        inputs[i] = unsqueeze(ag, inputs[i], 1);
  return apply(ag, op, inputs, args);
}

// args: see args_of().
const Op kMaskedFill = {
    .name = "MaskedFillBackward0",
    .forward =
        [](const Ops&, Inputs in, Args args) {
          return TensorList{chosen(Tensor::full({}, args.scalar, in[0].dtype()), in[0], args)};
        },
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{masked_fill(ag, grads[0], mask_of(node.args), 0.0)};
        },
    .batch = batch_masked<kMaskedFill>,
    .jvp = [](Autograd& ag, Inputs, Inputs tangents, Inputs,
              Args args) { return TensorList{masked_fill(ag, tangents[0], mask_of(args), 0.0)}; }};

const Op kWhere = {.name = "WhereBackward0",
                   .forward = [](const Ops&, Inputs in,
                                 Args args) { return TensorList{chosen(in[0], in[1], args)}; },
                   .backward =
                       [](Autograd& ag, OpNode& node, Inputs grads) {
                         TensorList out(2);
                         const Mask mask = mask_of(node.args);
                         const Tensor zero = Tensor::full({}, 0.0, grads[0].dtype());
                         if (node.needs(0)) out[0] = where(ag, mask, grads[0], zero);
                         if (node.needs(1)) out[1] = where(ag, mask, zero, grads[0]);
                         return out;
                       },
                   .batch = batch_masked<kWhere>,
                   .cast = CastPolicy::promote};

}  // namespace

Mask causal_mask(std::int64_t length) {
  Mask mask{{}, {length, length}};
  for (std::int64_t row = 0; row < length; ++row)
    for (std::int64_t column = 0; column < length; ++column) mask.values.push_back(column > row);
  return mask;
}

Tensor masked_fill(Autograd& ag, const Tensor& x, const Mask& mask, double number) {
  return apply_one(ag, kMaskedFill, {x}, args_of(mask, number));
}

Tensor where(Autograd& ag, const Mask& mask, const Tensor& a, const Tensor& b) {
  return apply_one(ag, kWhere, {a, b}, args_of(mask, 0.0));
}

}  // namespace zeroproof

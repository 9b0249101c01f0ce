#include "model/functions/losses.h"

#include <fmt/format.h>

#include "model/autocast/casts.h"
#include "model/functions/activations.h"
#include "model/functions/formula.h"
#include "model/functions/rules.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

using rules::batch_by_element;
using rules::Diff;

using Inputs = const TensorList&;
using Args = const OpArgs&;

extern const Op kMseLoss;
extern const Op kMseLossBackward;
extern const Op kNllLoss;
extern const Op kNllLossBackward;

// Of a loss, args.dim is its reduction.
Reduction reduction_of(Args args) {
  return static_cast<Reduction>(args.dim);
}

std::int64_t code_of(Reduction reduction) {
  return static_cast<std::int64_t>(reduction);
}

Tensor reduced(Autograd& ag, const Tensor& x, Reduction reduction) {
  if (reduction == Reduction::none) return x;
  return reduction == Reduction::mean ? mean(ag, x) : sum(ag, x);
}

void check_same_sizes(const Tensor& x, const Tensor& target) {
  if (x.sizes() != target.sizes())
    throw AutogradError("a loss compares tensors of the same sizes only");
}

// Twice the difference, per element of the mean.
double mse_factor(const Tensor& x, Args args) {
  return reduction_of(args) == Reduction::mean ? 2.0 / static_cast<double>(x.numel()) : 2.0;
}

Tensor mse_loss_backward(Autograd& ag, const TensorList& inputs, Args args) {
  return apply_one(ag, kMseLossBackward, inputs, {.dim = args.dim});
}

void save_all(OpNode& node, Inputs in) {
  for (const Tensor& input : in) node.save(input);
}

const Op kMseLoss = {
    .name = "MseLossBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          check_same_sizes(in[0], in[1]);
          const DType dtype = promote(in[0].dtype(), in[1].dtype());
          const Wide distance = Wide::of(ops, in[0]) - Wide::of(ops, in[1]);
          const Wide square = distance * distance;
          const Reduction reduction = reduction_of(args);
          if (reduction == Reduction::none) return TensorList{square.rounded(dtype)};
          const Wide total{ops, ops.sum(square.x)};
          if (reduction == Reduction::sum) return TensorList{total.rounded(dtype)};
          return TensorList{(total / static_cast<double>(in[0].numel())).rounded(dtype)};
        },
    .save = save_all,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          TensorList out(2);
          const Tensor x = node.saved(0);
          const Tensor target = node.saved(1);
          if (node.needs(0)) out[0] = mse_loss_backward(ag, {grads[0], x, target}, node.args);
          if (node.needs(1)) out[1] = mse_loss_backward(ag, {grads[0], target, x}, node.args);
          return out;
        },
    .batch = batch_by_element<kMseLoss>,
    .jvp =
        [](Autograd& ag, Inputs in, Inputs tangents, Inputs, Args args) {
          const Tensor change = rules::add_tangents(
              ag, tangents[0], tangents[1].is_defined() ? neg(ag, tangents[1]) : tangents[1]);
          const Diff slope = (Diff{ag, in[0]} - Diff{ag, in[1]}) * 2.0 * Diff{ag, change};
          return TensorList{reduced(ag, slope.x, reduction_of(args))};
        },
    .cast = CastPolicy::float32};

// From grad, x and target to grad * factor * (x - target).
const Op kMseLossBackward = {
    .name = "MseLossBackwardBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          const Wide distance = Wide::of(ops, in[1]) - Wide::of(ops, in[2]);
          const Wide grad = Wide::of(ops, in[0]) * mse_factor(in[1], args) * distance;
          return TensorList{grad.rounded(in[1].dtype())};
        },
    .save = save_all,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          TensorList out(3);
          const Diff grad{ag, node.saved(0)};
          const Diff x{ag, node.saved(1)};
          const Diff weighted = Diff{ag, grads[0]} * mse_factor(x.x, node.args);
          if (node.needs(0)) {
            const Diff slope = weighted * (x - Diff{ag, node.saved(2)});
            out[0] = sum_to(ag, slope.x, grad.x.sizes());
          }
          if (node.needs(1)) out[1] = (weighted * grad).x;
          if (node.needs(2)) out[2] = neg(ag, (weighted * grad).x);
          return out;
        },
    .batch = batch_by_element<kMseLossBackward>};

void check_classes(const Tensor& x, Args args) {
  const Shape& sizes = x.sizes();
  if (sizes.size() != 2 || !std::cmp_equal(sizes[0], args.indices.size()))
    throw AutogradError(
        fmt::format("Expected [rows, classes] and a class for each row, got {} dimensions and {} "
                    "classes",
                    sizes.size(), args.indices.size()));
  for (const std::int64_t index : args.indices)
    if (index != args.index && (index < 0 || index >= sizes[1]))
      throw AutogradError(fmt::format("Target {} is out of bounds.", index));
}

// What each row's loss counts in the result; args.indices: the classes, args.index: not counted.
std::vector<double> row_weights(Args args) {
  std::vector<double> weights;
  double total = 0.0;
  for (const std::int64_t index : args.indices)
    total += weights.emplace_back(index == args.index ? 0.0 : 1.0);
  if (reduction_of(args) == Reduction::mean)
    for (double& weight : weights)
      if (weight != 0.0) weight /= total;
  return weights;
}

// The element of each row that is its class; the first one where it is not counted.
std::vector<std::size_t> class_offsets(Args args, std::int64_t classes) {
  std::vector<std::size_t> offsets;
  std::int64_t row = 0;
  for (const std::int64_t index : args.indices)
    offsets.push_back(
        static_cast<std::size_t>(classes * row++ + (index == args.index ? 0 : index)));
  return offsets;
}

// Minus the chosen elements; their mean divides once, as the kernel does.
TensorList nll_loss_forward(const Ops& ops, Inputs in, Args args) {
  check_classes(in[0], args);
  const std::vector<double> values = in[0].values();
  const std::vector<std::size_t> chosen = class_offsets(args, in[0].sizes()[1]);
  OpArgs plain = args;
  plain.dim = code_of(Reduction::sum);
  const std::vector<double> counts = row_weights(plain);
  std::vector<double> losses;
  double count = 0.0;
  for (std::size_t row = 0; row < chosen.size(); ++row) {
    losses.push_back(counts[row] == 0.0 ? 0.0 : -values[chosen[row]]);
    count += counts[row];
  }
  const auto rows = static_cast<std::int64_t>(losses.size());
  const Wide all{ops, Tensor::of(losses, {rows})};
  const Reduction reduction = reduction_of(args);
  if (reduction == Reduction::none) return {all.rounded(in[0].dtype())};
  const Wide total{ops, ops.sum(all.x)};
  return {(reduction == Reduction::sum ? total : total / count).rounded(in[0].dtype())};
}

const Op kNllLoss = {.name = "NllLossBackward0",
                     .forward = nll_loss_forward,
                     .save = save_all,
                     .backward =
                         [](Autograd& ag, OpNode& node, Inputs grads) {
                           return apply(ag, kNllLossBackward, {grads[0], node.saved(0)}, node.args);
                         },
                     .batch = batch_by_element<kNllLoss>,
                     .jvp = [](Autograd& ag, Inputs, Inputs tangents, Inputs,
                               Args args) { return apply(ag, kNllLoss, {tangents[0]}, args); },
                     .cast = CastPolicy::float32};

// From grad and x to minus the weighted grad at the chosen elements; only the sizes of x matter.
const Op kNllLossBackward = {
    .name = "NllLossBackwardBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          const std::vector<double> weights = row_weights(args);
          const std::vector<std::size_t> chosen = class_offsets(args, in[1].sizes()[1]);
          const Wide grad{ops, broadcast_to(Wide::of(ops, in[0]).x, {in[1].sizes()[0]})};
          const Wide factors{ops, Tensor::of(weights, {in[1].sizes()[0]})};
          const std::vector<double> products = (grad * factors * -1.0).x.values();
          std::vector<double> out(static_cast<std::size_t>(in[1].numel()), 0.0);
          for (std::size_t row = 0; row < chosen.size(); ++row)
            if (weights[row] != 0.0) out[chosen[row]] = products[row];
          return TensorList{Tensor::of(out, in[1].sizes(), in[1].dtype())};
        },
    .save = [](OpNode& node, Inputs in) { node.args.sizes = in[1].sizes(); },
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          TensorList out(2);
          if (node.needs(0)) out[0] = apply_one(ag, kNllLoss, {grads[0]}, node.args);
          if (node.needs(1)) out[1] = Tensor::full(node.args.sizes, 0.0, grads[0].dtype());
          return out;
        },
    .batch = batch_by_element<kNllLossBackward>};

// Autocast runs a loss of several operations in float32 as a whole.
template <class Body>
Tensor in_float32(Autograd& ag, const TensorList& inputs, Body body) {
  if (!ag.local().autocast.may_cast()) return body(inputs);
  const TensorList cast = cast_inputs(ag, CastPolicy::float32, inputs);
  const AutocastExclusion inside(ag);
  return body(cast);
}

}  // namespace

Tensor mse_loss(Autograd& ag, const Tensor& x, const Tensor& target, Reduction reduction) {
  return apply_one(ag, kMseLoss, {x, target}, {.dim = code_of(reduction)});
}

Tensor l1_loss(Autograd& ag, const Tensor& x, const Tensor& target, Reduction reduction) {
  check_same_sizes(x, target);
  return in_float32(ag, {x, target}, [&](const TensorList& in) {
    return reduced(ag, abs(ag, sub(ag, in[0], in[1])), reduction);
  });
}

Tensor nll_loss(Autograd& ag, const Tensor& x, const Classes& target, Reduction reduction) {
  return apply_one(
      ag, kNllLoss, {x},
      {.dim = code_of(reduction), .index = target.ignore_index, .indices = target.of_row});
}

Tensor cross_entropy(Autograd& ag, const Tensor& logits, const Classes& target,
                     Reduction reduction) {
  return in_float32(ag, {logits}, [&](const TensorList& in) {
    return nll_loss(ag, log_softmax(ag, in[0], 1), target, reduction);
  });
}

}  // namespace zeroproof

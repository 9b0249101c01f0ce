#include "model/functions/fused.h"

#include <string>

#include "model/op.h"
#include "zeroproof/internal/model/fused_ops.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof::fused {
namespace {

using Inputs = const TensorList&;
using Args = const OpArgs&;

// Kernels read contiguous rows; gradients come as views too.
Tensor contiguous(const Ops& ops, const Tensor& x) {
  return !x.is_defined() || x.is_contiguous() ? x : ops.cast(x, x.dtype());
}

TensorList refuse(Autograd&, OpNode& node, Inputs) {
  throw AutogradError(std::string(node.name()) +
                      ": a fused operation is differentiable once; create_graph needs the same "
                      "composed of functions.h");
}

// Inputs x, residual or undefined, weight; args.scalar: eps. Outputs sum, y, inverse_rms, of which
// the last is for the backward alone.
// Inputs grad_y, grad_sum or undefined, sum, weight, inverse_rms.
const Op kAddRmsNormBackward = {.name = "AddRmsNormBackwardBackward0",
                                .forward =
                                    [](const Ops& ops, Inputs in, Args) {
                                      const RmsNormGrads grads = ops.fused().add_rms_norm_backward(
                                          contiguous(ops, in[0]), contiguous(ops, in[1]),
                                          {in[2], contiguous(ops, in[3]), in[4]});
                                      return TensorList{grads.x, grads.weight};
                                    },
                                .backward = refuse};

const Op kAddRmsNorm = {
    .name = "AddRmsNormBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          RmsNormOutputs out = ops.fused().add_rms_norm(
              contiguous(ops, in[0]), contiguous(ops, in[1]), contiguous(ops, in[2]), args.scalar);
          if (!in[1].is_defined()) out.sum = out.sum.detach();  // an input has its own node
          return TensorList{out.sum, out.y, out.inverse_rms};
        },
    .save = [](OpNode& node, Inputs in) { node.save(in[2]); },
    .saves_output = true,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          if (!grads[1].is_defined()) return TensorList{grads[0], grads[0], {}};
          const TensorList out =
              apply(ag, kAddRmsNormBackward,
                    {grads[1], grads[0], node.saved(1), node.saved(0), node.saved(3)});
          return TensorList{out[0], node.needs(1) ? out[0] : Tensor(), out[1]};
        }};

const Op kGeluBackward = {.name = "FusedGeluBackwardBackward0",
                          .forward =
                              [](const Ops& ops, Inputs in, Args) {
                                return TensorList{ops.fused().gelu_backward(
                                    contiguous(ops, in[0]), contiguous(ops, in[1]))};
                              },
                          .backward = refuse};

const Op kGelu = {
    .name = "FusedGeluBackward0",
    .forward = [](const Ops& ops, Inputs in,
                  Args) { return TensorList{ops.fused().gelu(contiguous(ops, in[0]))}; },
    .save = [](OpNode& node, Inputs in) { node.save(in[0]); },
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return apply(ag, kGeluBackward, {grads[0], node.saved(0)});
        }};

// args.index: heads. Inputs grad, out, rotated, log_sum_exp.
const Op kAttentionBackward = {
    .name = "CausalAttentionBackwardBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          return TensorList{ops.fused().causal_attention_backward(
              contiguous(ops, in[0]), {in[1], in[2], in[3]}, args.index)};
        },
    .backward = refuse};

// Outputs out, rotated, log_sum_exp, of which the last two are for the backward alone.
const Op kAttention = {.name = "CausalAttentionBackward0",
                       .forward =
                           [](const Ops& ops, Inputs in, Args args) {
                             const AttentionOutputs out =
                                 ops.fused().causal_attention(contiguous(ops, in[0]), args.index);
                             return TensorList{out.out, out.rotated, out.log_sum_exp};
                           },
                       .saves_output = true,
                       .backward =
                           [](Autograd& ag, OpNode& node, Inputs grads) {
                             return apply(ag, kAttentionBackward,
                                          {grads[0], node.saved(0), node.saved(1), node.saved(2)},
                                          node.args);
                           }};

// Inputs grad_loss, grad_logits. Its output has a record of its own: the node keeps the other.
const Op kCrossEntropyBackward = {
    .name = "FusedCrossEntropyBackwardBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args) {
          return TensorList{ops.fused().cross_entropy_backward(in[0], in[1]).detach()};
        },
    .backward = refuse};

// Inputs logits, targets. Outputs loss and its gradient, which is for the backward alone.
const Op kCrossEntropy = {
    .name = "FusedCrossEntropyBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args) {
          const CrossEntropyOutputs out =
              ops.fused().cross_entropy(contiguous(ops, in[0]), contiguous(ops, in[1]));
          return TensorList{out.loss, out.grad_logits};
        },
    .saves_output = true,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{apply_one(ag, kCrossEntropyBackward, {grads[0], node.saved(1)}), {}};
        }};

// args.index: rows of the table. Inputs grad, ids.
const Op kEmbeddingBackward = {
    .name = "FusedEmbeddingBackwardBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          return TensorList{ops.fused().embedding_backward(contiguous(ops, in[0]),
                                                           contiguous(ops, in[1]), args.index)};
        },
    .backward = refuse};

const Op kEmbedding = {
    .name = "FusedEmbeddingBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args) {
          return TensorList{ops.fused().embedding(contiguous(ops, in[0]), contiguous(ops, in[1]))};
        },
    .save =
        [](OpNode& node, Inputs in) {
          node.args.index = in[0].sizes()[0];
          node.save(in[1]);
        },
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{apply_one(ag, kEmbeddingBackward, {grads[0], node.saved(0)}, node.args),
                            {}};
        }};

}  // namespace

Normed add_rms_norm(Autograd& ag, const Tensor& x, const Tensor& residual, const Tensor& weight,
                    double eps) {
  TensorList out = apply(ag, kAddRmsNorm, {x, residual, weight}, {.scalar = eps});
  return {std::move(out[0]), std::move(out[1])};
}

Tensor gelu(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kGelu, {x});
}

Tensor causal_attention(Autograd& ag, const Tensor& qkv, std::int64_t heads) {
  return apply_one(ag, kAttention, {qkv}, {.index = heads});
}

Tensor cross_entropy(Autograd& ag, const Tensor& logits, const Tensor& targets) {
  return apply_one(ag, kCrossEntropy, {logits, targets});
}

Tensor embedding(Autograd& ag, const Tensor& table, const Tensor& ids) {
  return apply_one(ag, kEmbedding, {table, ids});
}

}  // namespace zeroproof::fused

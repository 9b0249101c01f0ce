// Products of matrices and the linear layer.
#include <string>
#include <utility>

#include "model/autocast/casts.h"
#include "model/functions/rules.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

using rules::add_tangents;
using rules::with_batch;

using Inputs = const TensorList&;
using Args = const OpArgs&;

extern const Op kMm;
extern const Op kAddmm;
extern const Op kBmm;

// Products promote no dtype.
void check_dtypes(const Tensor& left, const Tensor& right) {
  if (left.dtype() == right.dtype()) return;
  throw AutogradError("expected m1 and m2 to have the same dtype, but got: " +
                      std::string(dtype_name(left.dtype())) +
                      " != " + std::string(dtype_name(right.dtype())));
}

bool is_column_major(const Tensor& x) {
  return x.sizes().size() == 2 && x.strides()[0] == 1 && x.strides()[1] == x.sizes()[0];
}

// A gradient gets the layout of its input, so that the leaf can take it over (A4).
Tensor left_grad(Autograd& ag, const Tensor& grad, const Tensor& right, bool is_left_transposed) {
  if (is_left_transposed) return t(ag, mm(ag, right, t(ag, grad)));
  return mm(ag, grad, t(ag, right));
}

Tensor right_grad(Autograd& ag, const Tensor& grad, const Tensor& left, bool is_right_transposed) {
  if (is_right_transposed) return t(ag, mm(ag, t(ag, grad), left));
  return mm(ag, t(ag, left), grad);
}

// args.dim and args.other_dim: whether the left and the right factor were column-major.
void save_layouts(OpNode& node, const Tensor& left, const Tensor& right) {
  node.args.dim = is_column_major(left) ? 1 : 0;
  node.args.other_dim = is_column_major(right) ? 1 : 0;
}

Tensor times_left(Autograd& ag, const Tensor& tangent, const Tensor& right) {
  return tangent.is_defined() ? mm(ag, tangent, right) : tangent;
}
Tensor times_right(Autograd& ag, const Tensor& left, const Tensor& tangent) {
  return tangent.is_defined() ? mm(ag, left, tangent) : tangent;
}

// The right factor's gradient is computed first: mat2 before self.
const Op kMm = {.name = "MmBackward0",
                .forward =
                    [](const Ops& ops, Inputs in, Args) {
                      check_dtypes(in[0], in[1]);
                      return TensorList{ops.mm(in[0], in[1])};
                    },
                .save =
                    [](OpNode& node, Inputs in) {
                      node.save(node.needs(0) ? in[1] : Tensor());
                      node.save(node.needs(1) ? in[0] : Tensor());
                      save_layouts(node, in[0], in[1]);
                    },
                .backward =
                    [](Autograd& ag, OpNode& node, Inputs grads) {
                      TensorList out(2);
                      const Tensor right = node.saved(0);
                      const Tensor left = node.saved(1);
                      if (node.needs(1))
                        out[1] = right_grad(ag, grads[0], left, node.args.other_dim == 1);
                      if (node.needs(0))
                        out[0] = left_grad(ag, grads[0], right, node.args.dim == 1);
                      return out;
                    },
                .batch =
                    [](Autograd& ag, const BatchedInputs& in, Args) {
                      if (in.is_batched[1])
                        return TensorList{bmm(ag, with_batch(ag, in, 0), in.tensors[1])};
                      const Shape& left = in.tensors[0].sizes();
                      const Tensor rows = reshape(ag, in.tensors[0], {left[0] * left[1], left[2]});
                      const Tensor product = mm(ag, rows, in.tensors[1]);
                      return TensorList{view(ag, product, {left[0], left[1], product.sizes()[1]})};
                    },
                .jvp =
                    [](Autograd& ag, Inputs in, Inputs tangents, Inputs, Args) {
                      return TensorList{add_tangents(ag, times_left(ag, tangents[0], in[1]),
                                                     times_right(ag, in[0], tangents[1]))};
                    },
                .cast = CastPolicy::lower_precision};

const Op kAddmm = {.name = "AddmmBackward0",
                   .forward =
                       [](const Ops& ops, Inputs in, Args) {
                         check_dtypes(in[1], in[2]);
                         return TensorList{ops.addmm(in[0], in[1], in[2])};
                       },
                   .save =
                       [](OpNode& node, Inputs in) {
                         node.save(node.needs(2) ? in[1] : Tensor());
                         node.save(node.needs(1) ? in[2] : Tensor());
                         save_layouts(node, in[1], in[2]);
                       },
                   .backward =
                       [](Autograd& ag, OpNode& node, Inputs grads) {
                         TensorList out(3);
                         const Tensor left = node.saved(0);
                         const Tensor right = node.saved(1);
                         if (node.needs(1))
                           out[1] = left_grad(ag, grads[0], right, node.args.dim == 1);
                         if (node.needs(2))
                           out[2] = right_grad(ag, grads[0], left, node.args.other_dim == 1);
                         if (node.needs(0)) out[0] = grads[0];
                         return out;
                       },
                   .batch =
                       [](Autograd& ag, const BatchedInputs& in, Args args) {
                         const BatchedInputs factors{{in.tensors[1], in.tensors[2]},
                                                     {in.is_batched[1], in.is_batched[2]},
                                                     in.batch_size};
                         const bool has_batch = in.is_batched[1] || in.is_batched[2];
                         Tensor product = has_batch ? kMm.batch(ag, factors, args)[0]
                                                    : mm(ag, in.tensors[1], in.tensors[2]);
                         Tensor bias = in.tensors[0];
                         while (in.is_batched[0] && bias.sizes().size() < 3)
                           bias = unsqueeze(ag, bias, 1);
                         if (!has_batch) product = unsqueeze(ag, product, 0);
                         return TensorList{add(ag, product, bias)};
                       },
                   .jvp =
                       [](Autograd& ag, Inputs in, Inputs tangents, Inputs outputs, Args) {
                         const Tensor product = add_tangents(ag, times_left(ag, tangents[1], in[2]),
                                                             times_right(ag, in[1], tangents[2]));
                         const Tensor sum = add_tangents(ag, product, tangents[0]);
                         return TensorList{expand(ag, sum, outputs[0].sizes())};
                       },
                   .cast = CastPolicy::lower_precision};

Shape flattened_batch(const Tensor& x) {
  const Shape& sizes = x.sizes();
  return {sizes[0] * sizes[1], sizes[2], sizes[3]};
}

const Op kBmm = {
    .name = "BmmBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args) {
          check_dtypes(in[0], in[1]);
          return TensorList{ops.bmm(in[0], in[1])};
        },
    .save =
        [](OpNode& node, Inputs in) {
          node.save(node.needs(0) ? in[1] : Tensor());
          node.save(node.needs(1) ? in[0] : Tensor());
        },
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          TensorList out(2);
          const Tensor right = node.saved(0);
          const Tensor left = node.saved(1);
          if (node.needs(1)) out[1] = bmm(ag, transpose(ag, left, 1, 2), grads[0]);
          if (node.needs(0)) out[0] = bmm(ag, grads[0], transpose(ag, right, 1, 2));
          return out;
        },
    .batch =
        [](Autograd& ag, const BatchedInputs& in, Args) {
          const Tensor left = with_batch(ag, in, 0);
          const Tensor right = with_batch(ag, in, 1);
          const Tensor product = bmm(ag, reshape(ag, left, flattened_batch(left)),
                                     reshape(ag, right, flattened_batch(right)));
          const Shape& sizes = left.sizes();
          return TensorList{view(ag, product, {sizes[0], sizes[1], sizes[2], right.sizes()[3]})};
        },
    .jvp =
        [](Autograd& ag, Inputs in, Inputs tangents, Inputs, Args) {
          const Tensor& left = tangents[0];
          const Tensor& right = tangents[1];
          return TensorList{add_tangents(ag, left.is_defined() ? bmm(ag, left, in[1]) : left,
                                         right.is_defined() ? bmm(ag, in[0], right) : right)};
        },
    .cast = CastPolicy::lower_precision};

// A vector times a matrix, rows of any number of dimensions times a matrix, or batches of both.
Tensor matmul_of(Autograd& ag, Inputs in) {
  const Tensor& a = in[0];
  const Tensor& b = in[1];
  const Shape& left = a.sizes();
  const Shape& right = b.sizes();
  if (left.size() == 1 && right.size() == 2) return squeeze(ag, mm(ag, unsqueeze(ag, a, 0), b), 0);
  if (left.size() == 2 && right.size() == 2) return mm(ag, a, b);
  if (left.size() == 3 && right.size() == 3) return bmm(ag, a, b);
  if (left.size() == 3 && right.size() == 2) {
    const Tensor rows = reshape(ag, a, {left[0] * left[1], left[2]});
    return view(ag, mm(ag, rows, b), {left[0], left[1], right[1]});
  }
  throw AutogradError("matmul: only vectors, matrices and batches of matrices are multiplied here");
}

Tensor unflatten(Autograd& ag, const Tensor& product, const Shape& sizes) {
  const bool is_unsafe = ag.global().release.has(TorchChange::linear_unflattens_by_unsafe_view);
  return is_unsafe ? unsafe_view(ag, product, sizes) : view(ag, product, sizes);
}

// Rule N5: a 3-D input is flattened first, a vector becomes a matrix of one row.
Tensor linear_of(Autograd& ag, Inputs in) {
  const Tensor& x = in[0];
  const Tensor& weight = in[1];
  const Tensor& bias = in[2];
  const Shape& sizes = x.sizes();
  if (sizes.size() == 3 && bias.is_defined() && x.is_contiguous()) {
    const Tensor flat = view(ag, x, {sizes[0] * sizes[1], sizes[2]});
    const Tensor product = addmm(ag, bias, flat, t(ag, weight));
    return unflatten(ag, product, {sizes[0], sizes[1], weight.sizes()[0]});
  }
  const Tensor transposed = t(ag, weight);
  if (sizes.size() == 2)
    return bias.is_defined() ? addmm(ag, bias, x, transposed) : mm(ag, x, transposed);
  const Tensor product = matmul(ag, x, transposed);
  return bias.is_defined() ? add(ag, product, bias) : product;
}

// An operation made of others casts its inputs once, before anything else.
Tensor with_casts(Autograd& ag, Inputs inputs, Tensor (*body)(Autograd& ag, Inputs inputs)) {
  if (!ag.local().autocast.may_cast()) return body(ag, inputs);
  const AutocastExclusion inside(ag);
  return body(ag, cast_inputs(ag, CastPolicy::lower_precision, inputs));
}

}  // namespace

Tensor mm(Autograd& ag, const Tensor& a, const Tensor& b) {
  return apply_one(ag, kMm, {a, b});
}

Tensor addmm(Autograd& ag, const Tensor& bias, const Tensor& a, const Tensor& b) {
  return apply_one(ag, kAddmm, {bias, a, b});
}

Tensor bmm(Autograd& ag, const Tensor& a, const Tensor& b) {
  return apply_one(ag, kBmm, {a, b});
}

Tensor matmul(Autograd& ag, const Tensor& a, const Tensor& b) {
  return with_casts(ag, {a, b}, matmul_of);
}

Tensor linear(Autograd& ag, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const LinearFunction& replacement = ag.global().linear;
  if (replacement) return replacement(ag, x, weight, bias);
  return with_casts(ag, {x, weight, bias}, linear_of);
}

}  // namespace zeroproof

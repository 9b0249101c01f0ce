// Operations that only look at elements in another shape, and those that put parts together.
#include <algorithm>
#include <utility>

#include "model/functions/rules.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

using rules::batched_sizes;
using rules::jvp_linear;
using rules::with_batch;

using Inputs = const TensorList&;
using Args = const OpArgs&;

std::size_t at(std::int64_t dim) {
  return static_cast<std::size_t>(dim);
}

extern const Op kT;
extern const Op kTranspose;
extern const Op kView;
extern const Op kUnsqueeze;
extern const Op kSqueeze;
extern const Op kNarrow;
extern const Op kPad;
extern const Op kCat;
extern const Op kUnbind;
extern const Op kStack;

Tensor transposed(const Tensor& x, std::size_t a, std::size_t b) {
  Shape sizes = x.sizes();
  Shape strides = x.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return x.as_strided(std::move(sizes), std::move(strides), x.impl().offset_elements);
}

// Elements [begin, begin + length) of one dimension.
Tensor narrow_view(const Tensor& x, std::size_t dim, std::int64_t begin, std::int64_t length) {
  Shape sizes = x.sizes();
  sizes[dim] = length;
  const std::int64_t offset = x.impl().offset_elements + begin * x.strides()[dim];
  return x.as_strided(std::move(sizes), x.strides(), offset);
}

Tensor slice_of(const Tensor& x, std::size_t dim, std::int64_t index) {
  Shape sizes = x.sizes();
  Shape strides = x.strides();
  const std::int64_t offset = x.impl().offset_elements + index * strides[dim];
  const auto where = static_cast<std::ptrdiff_t>(dim);
  sizes.erase(sizes.begin() + where);
  strides.erase(strides.begin() + where);
  return x.as_strided(std::move(sizes), std::move(strides), offset);
}

const Op kT = {
    .name = "TBackward0",
    .forward =
        [](const Ops&, Inputs in, Args) {
          const bool is_matrix = in[0].sizes().size() == 2;
          return TensorList{is_matrix ? transposed(in[0], 0, 1) : in[0].shallow_copy()};
        },
    .backward = [](Autograd& ag, OpNode&, Inputs grads) { return TensorList{t(ag, grads[0])}; },
    .batch =
        [](Autograd& ag, const BatchedInputs& in, Args) {
          const Tensor& x = in.tensors[0];
          return TensorList{x.sizes().size() == 3 ? transpose(ag, x, 1, 2) : x};
        },
    .jvp = jvp_linear<kT>};

const Op kTranspose = {
    .name = "TransposeBackward0",
    .forward =
        [](const Ops&, Inputs in, Args args) {
          return TensorList{transposed(in[0], at(args.dim), at(args.other_dim))};
        },
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{transpose(ag, grads[0], node.args.dim, node.args.other_dim)};
        },
    .batch =
        [](Autograd& ag, const BatchedInputs& in, Args args) {
          return TensorList{transpose(ag, in.tensors[0], args.dim + 1, args.other_dim + 1)};
        },
    .jvp = jvp_linear<kTranspose>};

const Op kView = {
    .name = "ViewBackward0",
    .forward =
        [](const Ops&, Inputs in, Args args) {
          const Tensor& x = in[0];
          if (!x.is_contiguous() || numel(args.sizes) != x.numel())
            throw AutogradError("view size is not compatible with input tensor's size and stride");
          return TensorList{
              x.as_strided(args.sizes, contiguous_strides(args.sizes), x.impl().offset_elements)};
        },
    .save = [](OpNode& node, Inputs in) { node.args.sizes = in[0].sizes(); },
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{reshape(ag, grads[0], node.args.sizes)}; },
    .batch =
        [](Autograd& ag, const BatchedInputs& in, Args args) {
          return TensorList{reshape(ag, in.tensors[0], batched_sizes(in, args.sizes))};
        },
    .jvp = [](Autograd& ag, Inputs, Inputs tangents, Inputs,
              Args args) { return TensorList{reshape(ag, tangents[0], args.sizes)}; }};

const Op kUnsafeView = [] {
  Op op = kView;
  op.name = "UnsafeViewBackward0";
  return op;
}();

const Op kUnsqueeze = {
    .name = "UnsqueezeBackward0",
    .forward =
        [](const Ops&, Inputs in, Args args) {
          Shape sizes = in[0].sizes();
          Shape strides = in[0].strides();
          const std::size_t dim = at(args.dim);
          const std::int64_t stride = dim < sizes.size() ? sizes[dim] * strides[dim] : 1;
          sizes.insert(sizes.begin() + args.dim, 1);
          strides.insert(strides.begin() + args.dim, stride);
          return TensorList{
              in[0].as_strided(std::move(sizes), std::move(strides), in[0].impl().offset_elements)};
        },
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{squeeze(ag, grads[0], node.args.dim)}; },
    .batch = [](Autograd& ag, const BatchedInputs& in,
                Args args) { return TensorList{unsqueeze(ag, in.tensors[0], args.dim + 1)}; },
    .jvp = jvp_linear<kUnsqueeze>};

const Op kSqueeze = {
    .name = "SqueezeBackward4",
    .forward = [](const Ops&, Inputs in,
                  Args args) { return TensorList{slice_of(in[0], at(args.dim), 0)}; },
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{unsqueeze(ag, grads[0], node.args.dim)}; },
    .batch = [](Autograd& ag, const BatchedInputs& in,
                Args args) { return TensorList{squeeze(ag, in.tensors[0], args.dim + 1)}; },
    .jvp = jvp_linear<kSqueeze>};

const Op kNarrow = {
    .name = "SliceBackward0",
    .forward =
        [](const Ops&, Inputs in, Args args) {
          return TensorList{narrow_view(in[0], at(args.dim), args.index, args.sizes.at(0))};
        },
    .save = [](OpNode& node, Inputs in) { node.args.sizes = {in[0].sizes()[at(node.args.dim)]}; },
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return apply(ag, kPad, {grads[0]}, node.args); },
    .batch =
        [](Autograd& ag, const BatchedInputs& in, Args args) {
          return TensorList{
              narrow(ag, in.tensors[0], args.dim + 1, {args.index, args.sizes.at(0)})};
        },
    .jvp = jvp_linear<kNarrow>};

// Zeros around it: element args.index of args.sizes[0] in dimension args.dim is its first.
const Op kPad = {
    .name = "SliceBackwardBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          const Tensor& x = in[0];
          Shape sizes = x.sizes();
          sizes[at(args.dim)] = args.sizes.at(0);
          Tensor padded = Tensor::full(sizes, 0.0, x.dtype());
          const std::int64_t length = x.sizes()[at(args.dim)];
          ops.copy_in_place(narrow_view(padded, at(args.dim), args.index, length), x);
          return TensorList{padded};
        },
    .save = [](OpNode& node, Inputs in) { node.args.sizes = {in[0].sizes()[at(node.args.dim)]}; },
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return apply(ag, kNarrow, {grads[0]}, node.args); },
    .batch =
        [](Autograd& ag, const BatchedInputs& in, Args args) {
          OpArgs shifted = args;
          ++shifted.dim;
          return apply(ag, kPad, in.tensors, shifted);
        },
    .jvp = jvp_linear<kPad>};

TensorList zero_tangents_filled(Inputs primals, Inputs tangents) {
  TensorList filled = tangents;
  for (std::size_t i = 0; i < filled.size(); ++i)
    if (!filled[i].is_defined())
      filled[i] = Tensor::full(primals[i].sizes(), 0.0, primals[i].dtype());
  return filled;
}

DType common_dtype(Inputs parts) {
  DType dtype = parts.at(0).dtype();
  for (const Tensor& part : parts) dtype = promote(dtype, part.dtype());
  return dtype;
}

TensorList all_with_batch(Autograd& ag, const BatchedInputs& in) {
  TensorList all;
  for (std::size_t i = 0; i < in.tensors.size(); ++i) all.push_back(with_batch(ag, in, i));
  return all;
}

const Op kCat = {
    .name = "CatBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          const std::size_t dim = at(args.dim);
          Shape sizes = in.at(0).sizes();
          sizes.at(dim) = 0;
          for (const Tensor& part : in) sizes[dim] += part.sizes().at(dim);
          Tensor whole = Tensor::full(sizes, 0.0, common_dtype(in));
          std::int64_t begin = 0;
          for (const Tensor& part : in) {
            const std::int64_t length = part.sizes()[dim];
            ops.copy_in_place(narrow_view(whole, dim, begin, length), part);
            begin += length;
          }
          return TensorList{whole};
        },
    .save =
        [](OpNode& node, Inputs in) {
          for (const Tensor& part : in) node.args.shapes.push_back(part.sizes());
        },
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          TensorList out(node.args.shapes.size());
          std::int64_t begin = 0;
          for (std::size_t i = 0; i < out.size(); ++i) {
            const std::int64_t length = node.args.shapes[i][at(node.args.dim)];
            if (node.needs(i)) out[i] = narrow(ag, grads[0], node.args.dim, {begin, length});
            begin += length;
          }
          return out;
        },
    .batch = [](Autograd& ag, const BatchedInputs& in,
                Args args) { return TensorList{cat(ag, all_with_batch(ag, in), args.dim + 1)}; },
    .jvp =
        [](Autograd& ag, Inputs primals, Inputs tangents, Inputs, Args args) {
          return TensorList{cat(ag, zero_tangents_filled(primals, tangents), args.dim)};
        },
    .cast = on_cpu(CastPolicy::promote)};

// Undefined gradients of unused slices count as zeros.
const Op kUnbind = {
    .name = "UnbindBackward0",
    .forward =
        [](const Ops&, Inputs in, Args args) {
          TensorList slices;
          for (std::int64_t i = 0; i < in[0].sizes().at(at(args.dim)); ++i)
            slices.push_back(slice_of(in[0], at(args.dim), i));
          return slices;
        },
    .save =
        [](OpNode& node, Inputs in) {
          node.args.sizes = in[0].sizes();
          node.args.sizes.erase(node.args.sizes.begin() + node.args.dim);
          node.args.dtype = in[0].dtype();
        },
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          TensorList filled;
          for (const Tensor& grad : grads)
            filled.push_back(
                grad.is_defined() ? grad : Tensor::full(node.args.sizes, 0.0, node.args.dtype));
          return TensorList{stack(ag, filled, node.args.dim)};
        },
    .batch = [](Autograd& ag, const BatchedInputs& in,
                Args args) { return unbind(ag, in.tensors[0], args.dim + 1); },
    .jvp = jvp_linear<kUnbind>};

const Op kStack = {
    .name = "StackBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          Shape sizes = in.at(0).sizes();
          sizes.insert(sizes.begin() + args.dim, static_cast<std::int64_t>(in.size()));
          Tensor whole = Tensor::full(sizes, 0.0, common_dtype(in));
          for (std::size_t i = 0; i < in.size(); ++i) {
            const auto index = static_cast<std::int64_t>(i);
            ops.copy_in_place(slice_of(whole, at(args.dim), index), in[i]);
          }
          return TensorList{whole};
        },
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return unbind(ag, grads[0], node.args.dim); },
    .batch = [](Autograd& ag, const BatchedInputs& in,
                Args args) { return TensorList{stack(ag, all_with_batch(ag, in), args.dim + 1)}; },
    .jvp =
        [](Autograd& ag, Inputs primals, Inputs tangents, Inputs, Args args) {
          return TensorList{stack(ag, zero_tangents_filled(primals, tangents), args.dim)};
        },
    .cast = on_cpu(CastPolicy::promote)};

}  // namespace

Tensor t(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kT, {x});
}

Tensor transpose(Autograd& ag, const Tensor& x, std::int64_t dim, std::int64_t other_dim) {
  return apply_one(ag, kTranspose, {x}, {.dim = dim, .other_dim = other_dim});
}

Tensor view(Autograd& ag, const Tensor& x, const Shape& sizes) {
  return apply_one(ag, kView, {x}, {.sizes = sizes});
}

Tensor unsafe_view(Autograd& ag, const Tensor& x, const Shape& sizes) {
  return apply_one(ag, kUnsafeView, {x}, {.sizes = sizes});
}

Tensor reshape(Autograd& ag, const Tensor& x, const Shape& sizes) {
  return view(ag, x.is_contiguous() ? x : clone(ag, x), sizes);
}

Tensor unsqueeze(Autograd& ag, const Tensor& x, std::int64_t dim) {
  return apply_one(ag, kUnsqueeze, {x}, {.dim = dim});
}

Tensor squeeze(Autograd& ag, const Tensor& x, std::int64_t dim) {
  return apply_one(ag, kSqueeze, {x}, {.dim = dim});
}

Tensor narrow(Autograd& ag, const Tensor& x, std::int64_t dim, Range range) {
  return apply_one(ag, kNarrow, {x}, {.dim = dim, .index = range.begin, .sizes = {range.length}});
}

Tensor cat(Autograd& ag, const TensorList& parts, std::int64_t dim) {
  return apply_one(ag, kCat, parts, {.dim = dim});
}

TensorList unbind(Autograd& ag, const Tensor& x, std::int64_t dim) {
  return apply(ag, kUnbind, {x}, {.dim = dim});
}

Tensor stack(Autograd& ag, const TensorList& slices, std::int64_t dim) {
  return apply_one(ag, kStack, slices, {.dim = dim});
}

TensorList chunk(Autograd& ag, const Tensor& x, std::int64_t chunks, std::int64_t dim) {
  const std::int64_t size = x.sizes().at(at(dim));
  const std::int64_t length = (size + chunks - 1) / chunks;
  TensorList parts;
  for (std::int64_t begin = 0; begin < size; begin += length)
    parts.push_back(narrow(ag, x, dim, {begin, std::min(length, size - begin)}));
  return parts;
}

}  // namespace zeroproof

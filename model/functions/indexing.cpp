// Rows, slices and single elements by index.
#include "model/functions/indexing.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/functions/formula.h"
#include "model/functions/rules.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

using rules::batch_by_element;
using rules::dim_of;

using Inputs = const TensorList&;
using Args = const OpArgs&;

extern const Op kEmbedding;
extern const Op kEmbeddingBackward;
extern const Op kIndexSelect;
extern const Op kIndexAdd;
extern const Op kGather;
extern const Op kScatterAdd;
extern const Op kTopk;
extern const Op kMax;

Tensor zeros(const Shape& sizes, DType dtype) {
  return Tensor::full(sizes, 0.0, dtype);
}

void check_indices(Args args, std::int64_t size) {
  for (const std::int64_t index : args.indices)
    if (index < 0 || index >= size)
      throw AutogradError(
          fmt::format("index {} is out of bounds for dimension with size {}", index, size));
}

// The slice of x at one index of a dimension, as a view.
Tensor slice_at(const Tensor& x, std::size_t dim, std::int64_t index) {
  Shape sizes = x.sizes();
  sizes[dim] = 1;
  const std::int64_t offset = x.impl().offset_elements + index * x.strides()[dim];
  return x.as_strided(std::move(sizes), x.strides(), offset);
}

Tensor selected(const Ops& ops, const Tensor& x, Args args) {
  const std::size_t dim = dim_of(x, args.dim);
  check_indices(args, x.sizes()[dim]);
  Shape sizes = x.sizes();
  sizes[dim] = static_cast<std::int64_t>(args.indices.size());
  Tensor out = zeros(sizes, x.dtype());
  std::int64_t next = 0;
  for (const std::int64_t index : args.indices)
    ops.copy_in_place(slice_at(out, dim, next++), slice_at(x, dim, index));
  return out;
}

// One addition after the other, each rounded, as upstream's loop.
void add_at(const Ops& ops, const Tensor& target, const Tensor& source, Args args) {
  const std::size_t dim = dim_of(target, args.dim);
  check_indices(args, target.sizes()[dim]);
  if (source.sizes().size() != target.sizes().size() ||
      !std::cmp_equal(source.sizes()[dim], args.indices.size()))
    throw AutogradError("index_add: as many slices are added as there are indices");
  std::int64_t next = 0;
  for (const std::int64_t index : args.indices)
    ops.add_in_place(slice_at(target, dim, index), slice_at(source, dim, next++));
}

Tensor as_matrix(const Tensor& x, std::int64_t columns) {
  const std::int64_t rows = columns == 0 ? 0 : x.numel() / columns;
  return x.as_strided({rows, columns}, {columns, 1}, x.impl().offset_elements);
}

// args.indices: the rows; args.sizes: the sizes of the indices; args.index: rows of the weight.
const Op kEmbedding = {
    .name = "EmbeddingBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          if (in[0].sizes().size() != 2) throw AutogradError("'weight' must be 2-D");
          const Tensor rows = selected(ops, in[0], args);
          Shape sizes = args.sizes;
          sizes.push_back(in[0].sizes()[1]);
          Shape strides = contiguous_strides(sizes);
          return TensorList{rows.as_strided(std::move(sizes), std::move(strides), 0)};
        },
    .save = [](OpNode& node, Inputs in) { node.args.index = in[0].sizes()[0]; },
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return apply(ag, kEmbeddingBackward, {grads[0]}, node.args); },
    .batch = batch_by_element<kEmbedding>,
    .jvp = rules::jvp_linear<kEmbedding>};

const Op kEmbeddingBackward = {
    .name = "EmbeddingDenseBackwardBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          const std::int64_t width = in[0].sizes().back();
          Tensor out = zeros({args.index, width}, in[0].dtype());
          const Tensor grad = in[0].is_contiguous() ? in[0] : ops.cast(in[0], in[0].dtype());
          add_at(ops, out, as_matrix(grad, width), args);
          return TensorList{out};
        },
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return apply(ag, kEmbedding, {grads[0]}, node.args); },
    .batch = batch_by_element<kEmbeddingBackward>,
    .jvp = rules::jvp_linear<kEmbeddingBackward>};

template <const Op& op>
TensorList batch_behind(Autograd& ag, const BatchedInputs& in, Args args) {
  OpArgs shifted = args;
  ++shifted.dim;
  TensorList inputs;
  for (std::size_t i = 0; i < in.tensors.size(); ++i)
    inputs.push_back(rules::with_batch(ag, in, i));
  return apply(ag, op, inputs, shifted);
}

void save_shape(OpNode& node, Inputs in) {
  node.args.shapes = {in[0].sizes()};
}

const Op kIndexSelect = {
    .name = "IndexSelectBackward0",
    .forward = [](const Ops& ops, Inputs in,
                  Args args) { return TensorList{selected(ops, in[0], args)}; },
    .save = save_shape,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          const Tensor none = zeros(node.args.shapes.at(0), grads[0].dtype());
          return TensorList{index_add(ag, none, node.args.dim, node.args.indices, grads[0])};
        },
    .batch = batch_behind<kIndexSelect>,
    .jvp = rules::jvp_linear<kIndexSelect>};

const Op kIndexAdd = {.name = "IndexAddBackward0",
                      .forward =
                          [](const Ops& ops, Inputs in, Args args) {
                            Tensor out = ops.cast(in[0], in[0].dtype());
                            add_at(ops, out, in[1], args);
                            return TensorList{out};
                          },
                      .backward =
                          [](Autograd& ag, OpNode& node, Inputs grads) {
                            TensorList out(2);
                            if (node.needs(0)) out[0] = grads[0];
                            if (node.needs(1))
                              out[1] = index_select(ag, grads[0], node.args.dim, node.args.indices);
                            return out;
                          },
                      .batch = batch_behind<kIndexAdd>};

// Where in x, row-major, each element of the index looks.
std::vector<std::size_t> gathered_offsets(const Tensor& x, Args args) {
  const std::size_t dim = dim_of(x, args.dim);
  check_indices(args, x.sizes()[dim]);
  const bool fits = args.sizes.size() == x.sizes().size() &&
                    std::cmp_equal(numel(args.sizes), args.indices.size());
  for (std::size_t d = 0; fits && d < args.sizes.size(); ++d)
    if (d != dim && args.sizes[d] > x.sizes()[d])
      throw AutogradError("gather: the index is larger than the input");
  if (!fits) throw AutogradError("Index tensor must have the same number of dimensions as input");
  Shape strides = contiguous_strides(x.sizes());
  const std::int64_t stride = std::exchange(strides[dim], 0);
  const Tensor shape(std::make_shared<TensorImpl>(
      TensorImpl{.storage = nullptr, .sizes = args.sizes, .strides = std::move(strides)}));
  std::vector<std::size_t> offsets;
  for_each_offset(shape.impl(), [&](std::size_t offset) {
    const auto along = static_cast<std::size_t>(args.indices[offsets.size()] * stride);
    offsets.push_back(offset + along);
  });
  return offsets;
}

TensorList gather_forward(const Ops&, Inputs in, Args args) {
  const std::vector<double> values = in[0].values();
  std::vector<double> out;
  for (const std::size_t offset : gathered_offsets(in[0], args)) out.push_back(values[offset]);
  return {Tensor::of(out, args.sizes, in[0].dtype())};
}

Indices indices_of(Args args) {
  return {args.indices, args.sizes};
}

TensorList gather_backward(Autograd& ag, OpNode& node, Inputs grads) {
  const Tensor none = zeros(node.args.shapes.at(0), grads[0].dtype());
  return {scatter_add(ag, none, node.args.dim, indices_of(node.args), grads[0])};
}

const Op kGather = {.name = "GatherBackward0",
                    .forward = gather_forward,
                    .save = save_shape,
                    .backward = gather_backward,
                    .batch = batch_by_element<kGather>,
                    .jvp = rules::jvp_linear<kGather>};

const Op kScatterAdd = {
    .name = "ScatterAddBackward0",
    .forward =
        [](const Ops&, Inputs in, Args args) {
          std::vector<double> out = in[0].values();
          const std::vector<double> source = in[1].values();
          const std::vector<std::size_t> offsets = gathered_offsets(in[0], args);
          if (offsets.size() != source.size())
            throw AutogradError("scatter_add: index and source differ in size");
          for (std::size_t i = 0; i < offsets.size(); ++i)
            out[offsets[i]] = round_to(in[0].dtype(), out[offsets[i]] + source[i]);
          return TensorList{Tensor::of(out, in[0].sizes(), in[0].dtype())};
        },
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          TensorList out(2);
          if (node.needs(0)) out[0] = grads[0];
          if (node.needs(1)) out[1] = gather(ag, grads[0], node.args.dim, indices_of(node.args));
          return out;
        },
    .batch = batch_by_element<kScatterAdd>};

// Found beforehand: args are those of kGather.
const Op kTopk = {.name = "TopkBackward0",
                  .forward = gather_forward,
                  .save = save_shape,
                  .backward = gather_backward};

const Op kMax = {.name = "MaxBackward0",
                 .forward =
                     [](const Ops& ops, Inputs in, Args args) {
                       const Tensor kept = gather_forward(ops, in, args)[0];
                       Shape sizes = kept.sizes();
                       sizes.erase(sizes.begin() + args.dim);
                       Shape strides = contiguous_strides(sizes);
                       return TensorList{kept.as_strided(std::move(sizes), std::move(strides), 0)};
                     },
                 .save = save_shape,
                 .backward =
                     [](Autograd& ag, OpNode& node, Inputs grads) {
                       return gather_backward(ag, node, {unsqueeze(ag, grads[0], node.args.dim)});
                     }};

// Of the k largest along a dimension, in descending order.
Indices largest_indices(const Tensor& x, std::int64_t k, std::size_t dim) {
  const std::int64_t size = x.sizes()[dim];
  if (k < 0 || k > size) throw AutogradError("selected index k out of range");
  Indices found{{}, x.sizes()};
  found.sizes[dim] = k;
  found.values.resize(static_cast<std::size_t>(numel(found.sizes)));
  const std::vector<double> values = x.values();
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < x.sizes().size(); ++d) inner *= x.sizes()[d];
  const std::int64_t lines = size == 0 ? 0 : x.numel() / size;
  for (std::int64_t line = 0; line < lines; ++line) {
    const std::int64_t begin = (line / inner) * inner * size + line % inner;
    const auto value = [&](std::int64_t i) {
      return values[static_cast<std::size_t>(begin + i * inner)];
    };
    std::vector<std::int64_t> order(static_cast<std::size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](auto a, auto b) { return value(a) > value(b); });
    const std::int64_t target = (line / inner) * inner * k + line % inner;
    for (std::int64_t i = 0; i < k; ++i)
      found.values[static_cast<std::size_t>(target + i * inner)] =
          order[static_cast<std::size_t>(i)];
  }
  return found;
}

Largest largest(Autograd& ag, const Op& op, const Tensor& x, std::int64_t k, std::int64_t dim) {
  Indices indices = largest_indices(x, k, dim_of(x, dim));
  const OpArgs args = {.dim = dim, .sizes = indices.sizes, .indices = indices.values};
  return {apply_one(ag, op, {x}, args), std::move(indices)};
}

}  // namespace

Tensor embedding(Autograd& ag, const Tensor& weight, const Indices& indices) {
  return apply_one(ag, kEmbedding, {weight}, {.sizes = indices.sizes, .indices = indices.values});
}

Tensor index_select(Autograd& ag, const Tensor& x, std::int64_t dim,
                    const std::vector<std::int64_t>& indices) {
  return apply_one(ag, kIndexSelect, {x}, {.dim = dim, .indices = indices});
}

Tensor index_add(Autograd& ag, const Tensor& x, std::int64_t dim,
                 const std::vector<std::int64_t>& indices, const Tensor& source) {
  return apply_one(ag, kIndexAdd, {x, source}, {.dim = dim, .indices = indices});
}

Tensor gather(Autograd& ag, const Tensor& x, std::int64_t dim, const Indices& indices) {
  return apply_one(ag, kGather, {x},
                   {.dim = dim, .sizes = indices.sizes, .indices = indices.values});
}

Tensor scatter_add(Autograd& ag, const Tensor& x, std::int64_t dim, const Indices& indices,
                   const Tensor& source) {
  return apply_one(ag, kScatterAdd, {x, source},
                   {.dim = dim, .sizes = indices.sizes, .indices = indices.values});
}

Largest topk(Autograd& ag, const Tensor& x, std::int64_t k, std::int64_t dim) {
  return largest(ag, kTopk, x, k, dim);
}

Largest max(Autograd& ag, const Tensor& x, std::int64_t dim) {
  Largest found = largest(ag, kMax, x, 1, dim);
  found.indices.sizes.erase(found.indices.sizes.begin() + dim);
  return found;
}

}  // namespace zeroproof

// Sums, and their counterpart, repetition.
#include <utility>

#include "model/functions/formula.h"
#include "model/functions/rules.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof {
namespace {

using rules::batched_sizes;
using rules::jvp_linear;

using Inputs = const TensorList&;
using Args = const OpArgs&;

void save_sizes(OpNode& node, Inputs in) {
  node.args.sizes = in[0].sizes();
}

extern const Op kSum;
extern const Op kSumDims;
extern const Op kSumTo;
extern const Op kMean;
extern const Op kMeanDims;
extern const Op kExpand;

// `dims` ascending.
Shape reduced_sizes(Shape sizes, const std::vector<std::int64_t>& dims) {
  for (const std::int64_t dim : dims) sizes[static_cast<std::size_t>(dim)] = 1;
  return sizes;
}

Shape without_dims(const Shape& sizes, const std::vector<std::int64_t>& dims) {
  Shape rest;
  std::size_t next = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (next < dims.size() && std::cmp_equal(dims[next], d)) {
      ++next;
    } else {
      rest.push_back(sizes[d]);
    }
  }
  return rest;
}

std::vector<std::int64_t> all_dims(std::size_t first, std::size_t end) {
  std::vector<std::int64_t> dims;
  for (std::size_t d = first; d < end; ++d) dims.push_back(static_cast<std::int64_t>(d));
  return dims;
}

Tensor widened(const Ops& ops, const Tensor& x, Args args) {
  return args.result ? ops.cast(x, *args.result) : x;
}

const Op kSum = {
    .name = "SumBackward0",
    .forward = [](const Ops& ops, Inputs in,
                  Args args) { return TensorList{ops.sum(widened(ops, in[0], args))}; },
    .save = save_sizes,
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{expand(ag, grads[0], node.args.sizes)}; },
    .batch =
        [](Autograd& ag, const BatchedInputs& in, Args args) {
          const Tensor& x = in.tensors[0];
          const auto dims = all_dims(1, x.sizes().size());
          if (!dims.empty())
            return apply(ag, kSumDims, {x}, {.indices = dims, .result = args.result});
          return TensorList{clone(ag, args.result ? to(ag, x, *args.result) : x)};
        },
    .jvp = jvp_linear<kSum>,
    .cast = on_accelerators(CastPolicy::float32_result)};

// args.indices: the dimensions; args.flag: they stay, with size 1.
const Op kSumDims = {
    .name = "SumBackward1",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          for (const std::int64_t dim : args.indices) rules::dim_of(in[0], dim);
          const Tensor kept =
              ops.sum_to(widened(ops, in[0], args), reduced_sizes(in[0].sizes(), args.indices));
          if (args.flag) return TensorList{kept};
          Shape sizes = without_dims(in[0].sizes(), args.indices);
          Shape strides = contiguous_strides(sizes);
          return TensorList{kept.as_strided(std::move(sizes), std::move(strides), 0)};
        },
    .save = save_sizes,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          Tensor grad = grads[0];
          if (!node.args.flag)
            for (const std::int64_t dim : node.args.indices) grad = unsqueeze(ag, grad, dim);
          return TensorList{expand(ag, grad, node.args.sizes)};
        },
    .batch =
        [](Autograd& ag, const BatchedInputs& in, Args args) {
          OpArgs shifted = args;
          for (std::int64_t& dim : shifted.indices) ++dim;
          return apply(ag, kSumDims, in.tensors, shifted);
        },
    .jvp = jvp_linear<kSumDims>,
    .cast = on_accelerators(CastPolicy::float32_result)};

const Op kSumTo = {
    .name = "SumBackward1",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          return TensorList{ops.sum_to(widened(ops, in[0], args), args.sizes)};
        },
    .save = save_sizes,
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{expand(ag, grads[0], node.args.sizes)}; },
    .batch =
        [](Autograd& ag, const BatchedInputs& in, Args args) {
          Tensor x = in.tensors[0];
          const std::size_t extra = x.sizes().size() - 1 - args.sizes.size();
          if (extra > 0) x = sum(ag, x, all_dims(1, 1 + extra), KeepDim::no);
          return TensorList{sum_to(ag, x, batched_sizes(in, args.sizes))};
        },
    .jvp = jvp_linear<kSumTo>,
    .cast = on_accelerators(CastPolicy::float32_result)};

double count_of(const Shape& sizes, const std::vector<std::int64_t>& dims) {
  double count = 1.0;
  for (const std::int64_t dim : dims)
    count *= static_cast<double>(sizes.at(static_cast<std::size_t>(dim)));
  return count;
}

const Op kMean = {
    .name = "MeanBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args) {
          const auto count = static_cast<double>(in[0].numel());
          const Wide total{ops, ops.sum(Wide::of(ops, in[0]).x)};
          return TensorList{(total / count).rounded(in[0].dtype())};
        },
    .save = save_sizes,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          const auto count = static_cast<double>(numel(node.args.sizes));
          return TensorList{div_scalar(ag, expand(ag, grads[0], node.args.sizes), count)};
        },
    .batch =
        [](Autograd& ag, const BatchedInputs& in, Args) {
          const Tensor& x = in.tensors[0];
          const auto dims = all_dims(1, x.sizes().size());
          return TensorList{dims.empty() ? clone(ag, x) : mean(ag, x, dims, KeepDim::no)};
        },
    .jvp = jvp_linear<kMean>};

// args as of kSumDims.
const Op kMeanDims = {
    .name = "MeanBackward1",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          for (const std::int64_t dim : args.indices) rules::dim_of(in[0], dim);
          const double count = count_of(in[0].sizes(), args.indices);
          const TensorList wide = {Wide::of(ops, in[0]).x};
          const Wide total{ops, kSumDims.forward(ops, wide, args)[0]};
          return TensorList{(total / count).rounded(in[0].dtype())};
        },
    .save = save_sizes,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          const double count = count_of(node.args.sizes, node.args.indices);
          return TensorList{div_scalar(ag, kSumDims.backward(ag, node, grads)[0], count)};
        },
    .batch =
        [](Autograd& ag, const BatchedInputs& in, Args args) {
          OpArgs shifted = args;
          for (std::int64_t& dim : shifted.indices) ++dim;
          return apply(ag, kMeanDims, in.tensors, shifted);
        },
    .jvp = jvp_linear<kMeanDims>};

const Op kExpand = {
    .name = "ExpandBackward0",
    .forward =
        [](const Ops&, Inputs in, Args args) {
          Tensor wide = broadcast_to(in[0], args.sizes);
          return TensorList{wide.is_same(in[0]) ? wide.shallow_copy() : wide};
        },
    .save = save_sizes,
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{sum_to(ag, grads[0], node.args.sizes)}; },
    .batch =
        [](Autograd& ag, const BatchedInputs& in, Args args) {
          Tensor x = in.tensors[0];
          while (x.sizes().size() < args.sizes.size() + 1) x = unsqueeze(ag, x, 1);
          return TensorList{expand(ag, x, batched_sizes(in, args.sizes))};
        },
    .jvp = jvp_linear<kExpand>};

}  // namespace

Tensor sum(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kSum, {x});
}

Tensor sum(Autograd& ag, const Tensor& x, const std::vector<std::int64_t>& dims, KeepDim keep) {
  return apply_one(ag, kSumDims, {x}, {.indices = dims, .flag = keep == KeepDim::yes});
}

Tensor mean(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kMean, {x});
}

Tensor mean(Autograd& ag, const Tensor& x, const std::vector<std::int64_t>& dims, KeepDim keep) {
  return apply_one(ag, kMeanDims, {x}, {.indices = dims, .flag = keep == KeepDim::yes});
}

Tensor sum_to(Autograd& ag, const Tensor& x, const Shape& sizes) {
  return x.sizes() == sizes ? x : apply_one(ag, kSumTo, {x}, {.sizes = sizes});
}

Tensor expand(Autograd& ag, const Tensor& x, const Shape& sizes) {
  return apply_one(ag, kExpand, {x}, {.sizes = sizes});
}

Tensor sq(Autograd& ag, const Tensor& x) {
  return sum(ag, pow(ag, x, 2.0));
}

}  // namespace zeroproof

// Products of matrices and operations that only look at elements in another shape.
#include <utility>

#include "model/autograd.h"
#include "model/autograd_error.h"
#include "model/functions.h"
#include "model/op_node.h"
#include "model/tensor_impl.h"

namespace zeroproof {
namespace {

using Formula = OpNode::Formula;

bool is_column_major(const Tensor& x) {
  return x.strides()[0] == 1 && x.strides()[1] == x.sizes()[0];
}

// A gradient gets the layout of its input, so that the leaf behind it can take it over (A4).
Tensor left_grad(Autograd& ag, const Tensor& grad, const Tensor& right, bool is_left_transposed) {
  if (is_left_transposed) return t(ag, mm(ag, right, t(ag, grad)));
  return mm(ag, grad, t(ag, right));
}

Tensor right_grad(Autograd& ag, const Tensor& grad, const Tensor& left, bool is_right_transposed) {
  if (is_right_transposed) return t(ag, mm(ag, t(ag, grad), left));
  return mm(ag, t(ag, left), grad);
}

// The right factor's gradient is computed first: mat2 before self.
const Formula kMm = {"MmBackward0", [](Autograd& ag, OpNode& node, const TensorList& grads) {
                       TensorList out(2);
                       if (!grads[0].is_defined()) return out;
                       if (node.needs(1))
                         out[1] = right_grad(ag, grads[0], node.saved(0), node.is_right_transposed);
                       if (node.needs(0))
                         out[0] = left_grad(ag, grads[0], node.saved(1), node.is_left_transposed);
                       return out;
                     }};

const Formula kAddmm = {
    "AddmmBackward0", [](Autograd& ag, OpNode& node, const TensorList& grads) {
      TensorList out(3);
      if (!grads[0].is_defined()) return out;
      if (node.needs(1)) out[1] = left_grad(ag, grads[0], node.saved(1), node.is_left_transposed);
      if (node.needs(2)) out[2] = right_grad(ag, grads[0], node.saved(0), node.is_right_transposed);
      if (node.needs(0)) out[0] = grads[0];
      return out;
    }};

const Formula kT = {"TBackward0", [](Autograd& ag, OpNode&, const TensorList& grads) {
                      return TensorList{grads[0].is_defined() ? t(ag, grads[0]) : Tensor()};
                    }};

const Formula kView = {"ViewBackward0", [](Autograd& ag, OpNode& node, const TensorList& grads) {
                         if (!grads[0].is_defined()) return TensorList(1);
                         const bool is_viewable = grads[0].is_contiguous();
                         const Tensor grad = is_viewable ? grads[0] : clone(ag, grads[0]);
                         return TensorList{view(ag, grad, node.sizes)};
                       }};

// Elements [begin, begin + rows) of the first dimension.
Tensor narrow(Autograd& ag, const Tensor& x, std::int64_t begin, std::int64_t rows);

Tensor pad(Autograd& ag, const Tensor& x, std::int64_t begin, const Shape& sizes) {
  const auto zeros = [&](std::int64_t rows) {
    Shape shape = sizes;
    shape[0] = rows;
    return Tensor::full(shape, 0.0, x.dtype());
  };
  return cat(ag, {zeros(begin), x, zeros(sizes[0] - begin - x.sizes()[0])});
}

const Formula kNarrow = {"SliceBackward0", [](Autograd& ag, OpNode& node, const TensorList& grads) {
                           if (!grads[0].is_defined()) return TensorList(1);
                           const auto begin = static_cast<std::int64_t>(node.scalar);
                           return TensorList{pad(ag, grads[0], begin, node.sizes)};
                         }};

Tensor narrow(Autograd& ag, const Tensor& x, std::int64_t begin, std::int64_t rows) {
  const auto node = make_op_node(ag, kNarrow, {&x});
  if (node) {
    node->sizes = x.sizes();
    node->scalar = static_cast<double>(begin);
  }
  Shape sizes = x.sizes();
  sizes[0] = rows;
  const std::int64_t offset = x.impl().offset_elements + begin * x.strides()[0];
  return with_grad_fn(x.as_strided(std::move(sizes), x.strides(), offset), node);
}

const Formula kCat = {"CatBackward0", [](Autograd& ag, OpNode& node, const TensorList& grads) {
                        TensorList out(node.other_sizes.size());
                        std::int64_t begin = 0;
                        for (std::size_t i = 0; i < out.size(); ++i) {
                          const std::int64_t rows = node.other_sizes[i][0];
                          if (grads[0].is_defined() && node.needs(i))
                            out[i] = narrow(ag, grads[0], begin, rows);
                          begin += rows;
                        }
                        return out;
                      }};

TensorList with_zeros(const TensorList& grads, const Shape& sizes) {
  TensorList filled;
  for (const Tensor& grad : grads)
    filled.push_back(grad.is_defined() ? grad : Tensor::full(sizes, 0.0));
  return filled;
}

const Formula kUnbind = {"UnbindBackward0",
                         [](Autograd& ag, OpNode& node, const TensorList& grads) {
                           const auto dim = static_cast<std::size_t>(node.scalar);
                           return TensorList{stack(ag, with_zeros(grads, node.sizes), dim)};
                         }};

const Formula kStack = {"StackBackward0", [](Autograd& ag, OpNode& node, const TensorList& grads) {
                          if (!grads[0].is_defined()) return TensorList(node.next_edges().size());
                          return unbind(ag, grads[0], static_cast<std::size_t>(node.scalar));
                        }};

Tensor slice_of(const Tensor& x, std::size_t dim, std::int64_t index) {
  Shape sizes = x.sizes();
  Shape strides = x.strides();
  const std::int64_t offset = x.impl().offset_elements + index * strides[dim];
  const auto at = static_cast<std::ptrdiff_t>(dim);
  sizes.erase(sizes.begin() + at);
  strides.erase(strides.begin() + at);
  return x.as_strided(std::move(sizes), std::move(strides), offset);
}

}  // namespace

Tensor t(Autograd& ag, const Tensor& x) {
  const auto node = make_op_node(ag, kT, {&x});
  const bool is_matrix = x.sizes().size() == 2;
  Shape sizes = is_matrix ? Shape{x.sizes()[1], x.sizes()[0]} : x.sizes();
  Shape strides = is_matrix ? Shape{x.strides()[1], x.strides()[0]} : x.strides();
  const std::int64_t offset = x.impl().offset_elements;
  return with_grad_fn(x.as_strided(std::move(sizes), std::move(strides), offset), node);
}

Tensor view(Autograd& ag, const Tensor& x, const Shape& sizes) {
  if (!x.is_contiguous() || numel(sizes) != x.numel())
    throw AutogradError("view size is not compatible with input tensor's size and stride");
  const auto node = make_op_node(ag, kView, {&x});
  if (node) node->sizes = x.sizes();
  return with_grad_fn(x.as_strided(sizes, contiguous_strides(sizes), x.impl().offset_elements),
                      node);
}

Tensor mm(Autograd& ag, const Tensor& a, const Tensor& b) {
  const auto node = make_op_node(ag, kMm, {&a, &b});
  Tensor result = ag.ops().mm(a, b);
  if (node) {
    node->save(node->needs(1) ? a : Tensor());
    node->save(node->needs(0) ? b : Tensor());
    node->is_left_transposed = is_column_major(a);
    node->is_right_transposed = is_column_major(b);
  }
  return with_grad_fn(std::move(result), node);
}

Tensor addmm(Autograd& ag, const Tensor& bias, const Tensor& a, const Tensor& b) {
  const auto node = make_op_node(ag, kAddmm, {&bias, &a, &b});
  Tensor result = ag.ops().binary(BinaryOp::add, ag.ops().mm(a, b), bias);
  if (node) {
    node->save(node->needs(2) ? a : Tensor());
    node->save(node->needs(1) ? b : Tensor());
    node->is_left_transposed = is_column_major(a);
    node->is_right_transposed = is_column_major(b);
  }
  return with_grad_fn(std::move(result), node);
}

Tensor cat(Autograd& ag, const TensorList& parts) {
  const auto node = make_op_node(ag, kCat, parts);
  Shape sizes = parts.at(0).sizes();
  sizes.at(0) = 0;
  std::vector<double> values;
  for (const Tensor& part : parts) {
    const std::vector<double> more = part.values();
    values.insert(values.end(), more.begin(), more.end());
    sizes[0] += part.sizes()[0];
    if (node) node->other_sizes.push_back(part.sizes());
  }
  return with_grad_fn(Tensor::of(values, std::move(sizes), parts[0].dtype()), node);
}

TensorList unbind(Autograd& ag, const Tensor& x, std::size_t dim) {
  const auto node = make_op_node(ag, kUnbind, {&x});
  TensorList slices;
  for (std::int64_t i = 0; i < x.sizes().at(dim); ++i)
    slices.push_back(with_grad_fn(slice_of(x, dim, i), node));
  if (node) {
    node->sizes = slices.at(0).sizes();
    node->scalar = static_cast<double>(dim);
  }
  return slices;
}

Tensor stack(Autograd& ag, const TensorList& slices, std::size_t dim) {
  const auto node = make_op_node(ag, kStack, slices);
  Shape sizes = slices.at(0).sizes();
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim),
               static_cast<std::int64_t>(slices.size()));
  Tensor result = Tensor::full(sizes, 0.0, slices[0].dtype());
  for (std::size_t i = 0; i < slices.size(); ++i)
    ag.ops().copy_in_place(slice_of(result, dim, static_cast<std::int64_t>(i)), slices[i]);
  if (node) node->scalar = static_cast<double>(dim);
  return with_grad_fn(std::move(result), node);
}

// Rule N5: a 3-D input is flattened first when it needs a gradient itself.
Tensor linear(Autograd& ag, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (x.sizes().size() == 3) {
    const Shape& sizes = x.sizes();
    const Tensor flat = view(ag, x, {sizes[0] * sizes[1], sizes[2]});
    return view(ag, linear(ag, flat, weight, bias), {sizes[0], sizes[1], weight.sizes()[0]});
  }
  const Tensor transposed = t(ag, weight);
  return bias.is_defined() ? addmm(ag, bias, x, transposed) : mm(ag, x, transposed);
}

}  // namespace zeroproof

#include "model/cpu_ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/check.h"
#include "model/element_ops.h"
#include "model/product_shapes.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

// Of two matrices, each element a sum from left to right.
std::vector<double> product(const Tensor& a, const Tensor& b) {
  const auto rows = static_cast<std::size_t>(a.sizes()[0]);
  const auto inner = static_cast<std::size_t>(a.sizes()[1]);
  const auto columns = static_cast<std::size_t>(b.sizes()[1]);
  const std::vector<double> left = a.values();
  const std::vector<double> right = b.values();
  std::vector<double> out(rows * columns, 0.0);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < inner; ++k)
      for (std::size_t j = 0; j < columns; ++j)
        out[i * columns + j] += left[i * inner + k] * right[k * columns + j];
  return out;
}

Tensor matrix_of(const Tensor& batch, std::int64_t index) {
  const std::int64_t offset = batch.impl().offset_elements + index * batch.strides()[0];
  return batch.as_strided({batch.sizes()[1], batch.sizes()[2]},
                          {batch.strides()[1], batch.strides()[2]}, offset);
}

}  // namespace

Shape broadcast(const Shape& a, const Shape& b) {
  Shape sizes(std::max(a.size(), b.size()), 1);
  const auto merge = [&](const Shape& from) {
    for (std::size_t d = 0; d < from.size(); ++d) {
      std::int64_t& size = sizes[sizes.size() - from.size() + d];
      if (size == 1) size = from[d];
      if (from[d] != 1 && from[d] != size)
        throw AutogradError(fmt::format("sizes [{}] and [{}] do not broadcast", fmt::join(a, ","),
                                        fmt::join(b, ",")));
    }
  };
  merge(a);
  merge(b);
  return sizes;
}

Tensor broadcast_to(const Tensor& x, const Shape& sizes) {
  if (x.sizes() == sizes) return x;
  ZP_CHECK(broadcast(x.sizes(), sizes) == sizes, "a tensor broadcast to fewer elements");
  Shape strides(sizes.size(), 0);
  const std::size_t added = sizes.size() - x.sizes().size();
  for (std::size_t d = 0; d < x.sizes().size(); ++d)
    if (x.sizes()[d] == sizes[d + added]) strides[d + added] = x.strides()[d];
  return x.as_strided(sizes, std::move(strides), x.impl().offset_elements);
}

Tensor CpuOps::unary(UnaryOp op, const Tensor& x) const {
  std::vector<double> values = x.values();
  for (double& value : values) value = evaluate(op, value);
  return Tensor::of(values, x.sizes(), x.dtype());
}

Tensor CpuOps::binary(BinaryOp op, const Tensor& a, const Tensor& b) const {
  Shape sizes = broadcast(a.sizes(), b.sizes());
  std::vector<double> values = broadcast_to(a, sizes).values();
  const std::vector<double> right = broadcast_to(b, sizes).values();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = evaluate(op, values[i], right[i]);
  return Tensor::of(values, std::move(sizes), promote(a.dtype(), b.dtype()));
}

Tensor CpuOps::mm(const Tensor& a, const Tensor& b) const {
  check_factors(a, b, 2);
  return Tensor::of(product(a, b), {a.sizes()[0], b.sizes()[1]}, promote(a.dtype(), b.dtype()));
}

Tensor CpuOps::addmm(const Tensor& bias, const Tensor& a, const Tensor& b) const {
  check_factors(a, b, 2);
  Shape sizes = {a.sizes()[0], b.sizes()[1]};
  std::vector<double> values = product(a, b);
  const std::vector<double> offsets = broadcast_to(bias, sizes).values();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += offsets[i];
  return Tensor::of(values, std::move(sizes), promote(a.dtype(), b.dtype()));
}

Tensor CpuOps::bmm(const Tensor& a, const Tensor& b) const {
  check_factors(a, b, 3);
  std::vector<double> values;
  for (std::int64_t i = 0; i < a.sizes()[0]; ++i) {
    const std::vector<double> one = product(matrix_of(a, i), matrix_of(b, i));
    values.insert(values.end(), one.begin(), one.end());
  }
  return Tensor::of(values, {a.sizes()[0], a.sizes()[1], b.sizes()[2]},
                    promote(a.dtype(), b.dtype()));
}

Tensor CpuOps::sum(const Tensor& x) const {
  double total = 0.0;
  for (const double value : x.values()) total += value;
  return Tensor::of({total}, {}, x.dtype());
}

Tensor CpuOps::sum_to(const Tensor& x, const Shape& sizes) const {
  Tensor out = Tensor::full(sizes, 0.0, DType::float64);
  const Tensor wide = broadcast_to(out, x.sizes());
  const std::vector<double> values = x.values();
  std::vector<double>& elements = out.impl().storage->elements;
  std::size_t i = 0;
  for_each_offset(wide.impl(), [&](std::size_t offset) { elements[offset] += values[i++]; });
  return x.dtype() == DType::float64 ? out : cast(out, x.dtype());
}

Tensor CpuOps::max_to(const Tensor& x, const Shape& sizes) const {
  Tensor out = Tensor::full(sizes, -std::numeric_limits<double>::infinity(), x.dtype());
  const Tensor wide = broadcast_to(out, x.sizes());
  const std::vector<double> values = x.values();
  std::vector<double>& elements = out.impl().storage->elements;
  std::size_t i = 0;
  for_each_offset(wide.impl(), [&](std::size_t offset) {
    const double value = values[i++];
    if (value > elements[offset] || std::isnan(value)) elements[offset] = value;
  });
  return out;
}

Tensor CpuOps::cast(const Tensor& x, DType dtype) const {
  return Tensor::of(x.values(), x.sizes(), dtype);
}

void CpuOps::add_in_place(const Tensor& target, const Tensor& x) const {
  const std::vector<double> values = broadcast_to(x, target.sizes()).values();
  Storage& storage = *target.impl().storage;
  ZP_CHECK(!storage.device, "the CPU writes to a tensor whose elements a device keeps");
  const DType dtype = target.dtype();
  std::size_t i = 0;
  for_each_offset(target.impl(), [&](std::size_t offset) {
    storage.elements[offset] = round_to(dtype, storage.elements[offset] + values[i++]);
  });
  ++storage.version;
}

void CpuOps::copy_in_place(const Tensor& target, const Tensor& x) const {
  const std::vector<double> values = broadcast_to(x, target.sizes()).values();
  Storage& storage = *target.impl().storage;
  ZP_CHECK(!storage.device, "the CPU writes to a tensor whose elements a device keeps");
  const DType dtype = target.dtype();
  std::size_t i = 0;
  for_each_offset(target.impl(), [&](std::size_t offset) {
    storage.elements[offset] = round_to(dtype, values[i++]);
  });
  ++storage.version;
}

}  // namespace zeroproof

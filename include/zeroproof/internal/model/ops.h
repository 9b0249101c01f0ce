#pragma once

#include <cstdint>

#include "zeroproof/internal/model/fused_ops.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

enum class UnaryOp : std::uint8_t {
  neg,
  abs,
  sign,
  relu,
  step,
  tanh,
  sin,
  cos,
  sqrt,
  exp,
  log,
  erf
};
enum class BinaryOp : std::uint8_t { add, sub, mul, div, pow };

// The arithmetic that the graph needs, without any graph: inputs are read, results are new
// contiguous tensors of the inputs' wider dtype. Views are Tensor::as_strided, not operations.
// Implementations compute each element in an order of their own that never varies.
class Ops {
 public:
  virtual ~Ops() = default;

  virtual Tensor unary(UnaryOp op, const Tensor& x) const = 0;
  // Sizes broadcast as in PyTorch; throws AutogradError when they do not fit.
  virtual Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b) const = 0;
  virtual Tensor mm(const Tensor& a, const Tensor& b) const = 0;
  // bias + a b, rounded once.
  virtual Tensor addmm(const Tensor& bias, const Tensor& a, const Tensor& b) const = 0;
  // Matrix by matrix along the first of three dimensions.
  virtual Tensor bmm(const Tensor& a, const Tensor& b) const = 0;
  virtual Tensor sum(const Tensor& x) const = 0;  // to a scalar
  // Sums the broadcast dimensions of x away until it has `sizes`.
  virtual Tensor sum_to(const Tensor& x, const Shape& sizes) const = 0;
  // The largest elements of x along the dimensions that have size 1 in `sizes`, which has x's rank.
  virtual Tensor max_to(const Tensor& x, const Shape& sizes) const = 0;
  virtual Tensor cast(const Tensor& x, DType dtype) const = 0;  // always a copy

  virtual void add_in_place(const Tensor& target, const Tensor& x) const = 0;
  // Writes x, broadcast, over the elements of `target`.
  virtual void copy_in_place(const Tensor& target, const Tensor& x) const = 0;

  // As long as this lives.
  virtual const FusedOps& fused() const = 0;

  // x where this arithmetic keeps elements: x itself, or a copy of it there. No graph.
  virtual Tensor place(const Tensor& x) const { return x; }
};

// What two shapes broadcast to; throws AutogradError when they do not fit.
Shape broadcast(const Shape& a, const Shape& b);

// x with stride 0 where `sizes` repeats it.
Tensor broadcast_to(const Tensor& x, const Shape& sizes);

}  // namespace zeroproof

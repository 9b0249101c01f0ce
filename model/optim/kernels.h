#pragma once

#include "zeroproof/internal/model/ops.h"
#include "zeroproof/model/tensor.h"

// The tensor kernels that updates are made of, one rounding to the result's dtype each. Numbers are
// rounded as upstream's kernels take them: to float32 for every dtype but float64. For
// model/optim/*.cpp only.
namespace zeroproof::optim {

struct Weighted {
  Tensor x;
  double factor;
};

struct Pair {
  Tensor a;
  Tensor b;
  double factor;
};

Tensor add(const Ops& ops, const Tensor& x, const Weighted& y);         // x + factor y
void add_(const Ops& ops, const Tensor& target, const Weighted& y);     // += factor y
void mul_(const Ops& ops, const Tensor& target, double factor);         // *= factor
void lerp_(const Ops& ops, const Tensor& target, const Weighted& end);  // += factor (end - target)
void addcmul_(const Ops& ops, const Tensor& target, const Pair& pair);  // += factor a b
void addcdiv_(const Ops& ops, const Tensor& target, const Pair& pair);  // += factor a / b
Tensor sqrt(const Ops& ops, const Tensor& x);
Tensor div(const Ops& ops, const Tensor& x, double divisor);
Tensor add(const Ops& ops, const Tensor& x, double number);
Tensor neg(const Ops& ops, const Tensor& x);
Tensor zeros_like(const Tensor& x);

}  // namespace zeroproof::optim

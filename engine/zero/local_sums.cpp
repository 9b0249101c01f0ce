#include "engine/zero/local_sums.h"

#include <algorithm>
#include <vector>

namespace zeroproof {

void LocalSums::collect() {
  begin_sums();
  for (ZeroParameter& parameter : context_.parameters) {
    const Tensor grad = parameter.tensor.grad();
    if (parameter.group < 0 || !grad.is_defined()) continue;
    context_.kernels().add(context_.compute(), Span::of(of(parameter)), Span::of(grad));
    parameter.tensor.set_grad({});
  }
}

// What needs memory comes first, and goes again where there is none.
void LocalSums::begin_sums() {
  std::vector<Tensor*> begun;
  try {
    for (ZeroParameter& parameter : context_.parameters)
      if (Tensor* const sum = begin_sum(parameter)) begun.push_back(sum);
  } catch (...) {
    for (Tensor* const sum : begun) *sum = {};
    throw;
  }
}

// The first gradient of a sum becomes it, and leaves room for the next one; null: there is a sum.
Tensor* LocalSums::begin_sum(ZeroParameter& parameter) {
  const DType dtype = context_.config.accumulation_dtype();
  const Tensor grad = parameter.tensor.grad();
  if (parameter.group < 0 || !grad.is_defined()) return nullptr;
  Tensor& sum = of(parameter);
  if (sum.is_defined()) return nullptr;
  if (grad.dtype() == dtype) {
    sum = grad;
  } else {
    sum = context_.runtime.memory().allocate(grad.numel(), dtype);
    context_.kernels().copy(context_.compute(), Span::of(sum), Span::of(grad));
  }
  parameter.tensor.set_grad({});
  return &sum;
}

void LocalSums::drop() {
  std::ranges::fill(sums_, Tensor());
}

void LocalSums::visit_state(StateVisitor& visitor) const {
  for (std::size_t id = 0; id < sums_.size(); ++id) {
    if (!sums_[id].is_defined()) continue;
    visitor.number(id);
    visitor.values(Span::of(sums_[id]));
  }
}

}  // namespace zeroproof

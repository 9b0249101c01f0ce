#include "model/input_buffer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

bool is_expandable(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  const std::size_t added = to.size() - from.size();
  for (std::size_t d = 0; d < from.size(); ++d)
    if (from[d] != 1 && from[d] != to[d + added]) return false;
  return true;
}

}  // namespace

bool is_writable_buffer(const Tensor& slot) {
  return slot.is_defined() && slot.use_count() == 1 && !slot.wrapper() &&
         slot.impl().storage.use_count() == 1 && slot.is_contiguous();
}

void add_to_buffer(Autograd& autograd, Tensor& slot, Tensor grad) {
  if (!grad.is_defined()) return;
  if (!slot.is_defined()) {
    slot = std::move(grad);
    return;
  }
  if (!autograd.is_grad_enabled() && !grad.wrapper() && is_writable_buffer(slot)) {
    autograd.ops().add_in_place(slot, grad);
  } else {
    slot = add(autograd, slot, grad);
  }
}

void validate_grad(Autograd& autograd, const Node& target, std::uint32_t slot, Tensor& grad) {
  if (!grad.is_defined() || slot >= target.input_metadata().size()) return;
  const InputMetadata& expected = target.input_metadata()[slot];
  if (grad.sizes() != expected.sizes) {
    if (!is_expandable(expected.sizes, grad.sizes())) {
      throw AutogradError(fmt::format(
          "Function {} returned an invalid gradient at index {} - got [{}] but expected shape "
          "compatible with [{}]",
          target.name(), slot, fmt::join(grad.sizes(), ", "), fmt::join(expected.sizes, ", ")));
    }
    grad = sum_to(autograd, grad, expected.sizes);
  }
  if (!expected.takes(grad.dtype())) grad = to(autograd, grad, *expected.grad_dtype);
}

}  // namespace zeroproof

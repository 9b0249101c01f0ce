#include "zeroproof/internal/model/transforms/transform_frame.h"

#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof {
namespace {

constexpr std::string_view kTransformNames[] = {"Grad", "Vmap", "Jvp"};

Shape without_first(const Shape& shape) {
  return {shape.begin() + 1, shape.end()};
}

}  // namespace

std::string_view transform_name(TransformKind kind) {
  return kTransformNames[static_cast<std::size_t>(kind)];
}

Tensor wrap(const TransformFrame& frame, const Tensor& inner) {
  return wrap_with_tangent(frame, inner, {});
}

// A batched tensor has no storage: no operation may read it past its batching rule.
Tensor wrap_with_tangent(const TransformFrame& frame, const Tensor& primal, const Tensor& tangent) {
  const bool is_batched = frame.kind == TransformKind::vmap;
  auto impl = std::make_shared<TensorImpl>();
  const TensorImpl& from = primal.impl();
  if (!is_batched) impl->storage = from.storage;
  impl->sizes = is_batched ? without_first(from.sizes) : from.sizes;
  impl->strides = is_batched ? without_first(from.strides) : from.strides;
  impl->offset_elements = from.offset_elements;
  impl->dtype = from.dtype;
  impl->device = from.device;
  impl->wrapper = std::make_unique<TensorWrapper>(
      TensorWrapper{frame.kind, frame.level, primal, tangent, frame.is_alive});
  return Tensor(std::move(impl));
}

Tensor without_dead_wrappers(const Tensor& tensor) {
  if (!tensor.is_defined()) return tensor;
  const TensorWrapper* wrapper = tensor.wrapper();
  if (!wrapper || *wrapper->is_alive) return tensor;
  return without_dead_wrappers(wrapper->inner);
}

bool is_live_wrapper(const Tensor& tensor) {
  return without_dead_wrappers(tensor).wrapper() != nullptr;
}

bool is_of_level(const Tensor& tensor, const TransformFrame& frame) {
  const TensorWrapper* wrapper = tensor.is_defined() ? tensor.wrapper() : nullptr;
  return wrapper && wrapper->is_alive == frame.is_alive;
}

Tensor unwrap(const Tensor& tensor, const TransformFrame& frame) {
  return is_of_level(tensor, frame) ? without_dead_wrappers(tensor.wrapper()->inner) : tensor;
}

}  // namespace zeroproof

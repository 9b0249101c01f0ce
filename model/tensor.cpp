#include "zeroproof/model/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "zeroproof/internal/model/node.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {

std::int64_t numel(const Shape& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

Shape contiguous_strides(const Shape& sizes) {
  Shape strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

Tensor Tensor::of(const std::vector<double>& values, Shape sizes, DType dtype) {
  if (!std::cmp_equal(values.size(), zeroproof::numel(sizes)))
    throw AutogradError(fmt::format("Tensor::of: {} values for the shape [{}], which has {}",
                                    values.size(), fmt::join(sizes, ", "),
                                    zeroproof::numel(sizes)));
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = std::make_shared<Storage>();
  impl->storage->elements = values;
  if (dtype != DType::float64)
    for (double& element : impl->storage->elements) element = round_to(dtype, element);
  impl->strides = contiguous_strides(sizes);
  impl->sizes = std::move(sizes);
  impl->dtype = dtype;
  return Tensor(std::move(impl));
}

Tensor Tensor::full(Shape sizes, double value, DType dtype) {
  const auto count = static_cast<std::size_t>(zeroproof::numel(sizes));
  return of(std::vector<double>(count, value), std::move(sizes), dtype);
}

Tensor Tensor::number(double value, DType dtype) {
  Tensor number = full({}, value, dtype);
  number.impl().is_wrapped_number = true;
  return number;
}

const Shape& Tensor::sizes() const {
  return impl_->sizes;
}
const Shape& Tensor::strides() const {
  return impl_->strides;
}
DType Tensor::dtype() const {
  return impl_->dtype;
}
Device Tensor::device() const {
  return impl_->device;
}
std::int64_t Tensor::numel() const {
  return zeroproof::numel(impl_->sizes);
}

bool Tensor::is_contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t d = impl_->sizes.size(); d-- > 0;) {
    if (impl_->sizes[d] != 1 && impl_->strides[d] != expected) return false;
    expected *= impl_->sizes[d];
  }
  return true;
}

const Storage* Tensor::storage_id() const {
  return impl_->storage.get();
}

std::vector<double> Tensor::values() const {
  if (!impl_->storage) throw AutogradError("the values of a batched tensor are hidden inside vmap");
  if (impl_->storage->device) return impl_->storage->device->read(*impl_);
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(numel()));
  const std::vector<double>& elements = impl_->storage->elements;
  for_each_offset(*impl_, [&](std::size_t offset) { values.push_back(elements[offset]); });
  return values;
}

double Tensor::item() const {
  if (numel() != 1)
    throw AutogradError(fmt::format("item() of a tensor with {} elements; use values()", numel()));
  if (!impl_->storage) throw AutogradError("vmap: item() of a batched tensor has no one value");
  if (impl_->storage->device) return impl_->storage->device->read(*impl_)[0];
  return impl_->storage->elements[static_cast<std::size_t>(impl_->offset_elements)];
}

Tensor Tensor::detach() const {
  Tensor copy = shallow_copy();
  if (TensorWrapper* wrapper = copy.impl_->wrapper.get()) wrapper->inner = wrapper->inner.detach();
  return copy;
}

Tensor Tensor::shallow_copy() const {
  Tensor copy = as_strided(impl_->sizes, impl_->strides, impl_->offset_elements);
  if (impl_->wrapper) copy.impl_->wrapper = std::make_unique<TensorWrapper>(*impl_->wrapper);
  return copy;
}

Tensor Tensor::as_strided(Shape sizes, Shape strides, std::int64_t offset_elements) const {
  auto view = std::make_shared<TensorImpl>();
  view->storage = impl_->storage;
  view->sizes = std::move(sizes);
  view->strides = std::move(strides);
  view->offset_elements = offset_elements;
  view->dtype = impl_->dtype;
  view->device = impl_->device;
  view->is_view = true;
  return Tensor(std::move(view));
}

Tensor Tensor::on(Device device) const {
  Tensor copy = of(values(), impl_->sizes, impl_->dtype);
  copy.impl_->device = device;
  return copy;
}

void Tensor::set_data(const Tensor& other) const {
  const Tensor data = without_dead_wrappers(other);
  if (data.wrapper())
    throw AutogradError(
        "a tensor made inside a function transform cannot become the data of a tensor outside");
  if (is_live_wrapper(*this))
    throw AutogradError(
        "mutating directly with `.data` inside functorch transform is not allowed.");
  if (impl_->dtype != data.dtype() || impl_->device != data.device())
    impl_->accumulate_grad.reset();
  const TensorImpl& from = data.impl();
  impl_->storage = from.storage;
  impl_->sizes = from.sizes;
  impl_->strides = from.strides;
  impl_->offset_elements = from.offset_elements;
  impl_->dtype = from.dtype;
  impl_->device = from.device;
}

const TensorWrapper* Tensor::wrapper() const {
  return impl_->wrapper.get();
}

bool Tensor::requires_grad() const {
  return impl_->requires_grad || impl_->grad_fn != nullptr;
}
bool Tensor::is_leaf() const {
  return impl_->grad_fn == nullptr;
}

void Tensor::set_requires_grad(bool requires_grad) const {
  if (!is_leaf()) throw AutogradError("you can only change requires_grad flags of leaf variables");
  impl_->requires_grad = requires_grad;
}

Tensor Tensor::grad() const {
  return impl_->grad;
}
void Tensor::set_grad(Tensor grad) const {
  impl_->grad = std::move(grad);
}
std::shared_ptr<Node> Tensor::grad_fn() const {
  return impl_->grad_fn;
}
std::uint32_t Tensor::output_nr() const {
  return impl_->output_nr;
}

HookHandle Tensor::register_hook(Hook hook) const {
  if (!requires_grad())
    throw AutogradError("cannot register a hook on a tensor that doesn't require gradient");
  if (is_leaf()) return impl_->hooks.add(std::move(hook));
  return impl_->grad_fn->add_tensor_hook(impl_->output_nr, std::move(hook));
}

HookHandle Tensor::register_post_accumulate_grad_hook(PostAccumulateHook hook) const {
  if (!is_leaf())
    throw AutogradError("post accumulate grad hooks cannot be registered on non-leaf tensors");
  return impl_->post_accumulate_hooks.add(std::move(hook));
}

void Tensor::retain_grad() const {
  if (!requires_grad())
    throw AutogradError("can't retain_grad on Tensor that has requires_grad=False");
  if (is_live_wrapper(*this))
    throw AutogradError(
        "You are attempting to call Tensor.retain_grad() inside of a function "
        "being transformed");
  if (is_leaf() || std::exchange(impl_->retains_grad, true)) return;
  impl_->grad_fn->retain_grad_of(*this);
}

}  // namespace zeroproof

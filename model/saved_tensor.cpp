#include "model/saved_tensor.h"

#include <utility>

#include "model/accumulate_grad.h"
#include "zeroproof/internal/model/node.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

// A batched tensor of vmap has no storage of its own; what it stands for has.
const Storage* storage_of(const Tensor& tensor) {
  const TensorWrapper* wrapper = tensor.wrapper();
  return wrapper ? storage_of(wrapper->inner) : tensor.storage_id();
}

}  // namespace

SavedTensor::SavedTensor(Autograd& autograd, const Tensor& tensor, bool is_output)
    : is_output_(is_output) {
  if (!tensor.is_defined()) return;
  output_nr_ = tensor.output_nr();
  const auto hooks = autograd.local().saved_tensor_hooks;
  if (!hooks || tensor.impl().is_wrapped_number) {
    tensor_ = is_output ? tensor.shallow_copy() : tensor;
    version_ = storage_of(tensor)->version;
    return;
  }
  packed_ = std::make_shared<Packed>();
  packed_->hooks = hooks->hooks;
  packed_->is_leaf = tensor.is_leaf();
  packed_->requires_grad = tensor.requires_grad();
  if (!is_output) packed_->grad_fn = gradient_edge(autograd, tensor).node;
  const GradMode no_grad(autograd, false);
  packed_->content = hooks->hooks.pack(is_output ? tensor.shallow_copy() : tensor);
}

Tensor SavedTensor::unpack(const std::shared_ptr<Node>& owner) const {
  if (is_released_) {
    throw AutogradError(
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Specify retain_graph=True");
  }
  if (packed_) return unpack_hooked(owner);
  if (!tensor_.is_defined()) return tensor_;
  if (storage_of(tensor_)->version != version_) {
    throw AutogradError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation");
  }
  if (!is_output_) return tensor_;
  Tensor output = tensor_.shallow_copy();
  output.impl().grad_fn = owner;
  output.impl().output_nr = output_nr_;
  return output;
}

Tensor SavedTensor::unpack_hooked(const std::shared_ptr<Node>& owner) const {
  const std::shared_ptr<const Packed> packed = packed_;  // the hook may release this one
  Tensor tensor = packed->hooks.unpack(packed->content).shallow_copy();
  TensorImpl& impl = tensor.impl();
  impl.output_nr = output_nr_;
  if (is_output_) {
    impl.grad_fn = owner;
  } else if (!packed->is_leaf) {
    impl.grad_fn = packed->grad_fn;
  } else {
    impl.requires_grad = packed->requires_grad;
    impl.accumulate_grad = packed->grad_fn;
  }
  return tensor;
}

void SavedTensor::release() {
  tensor_ = Tensor();
  packed_.reset();
  is_released_ = true;
}

SavedTensorHooksScope::SavedTensorHooksScope(Autograd& autograd, SavedTensorHooks hooks)
    : autograd_(autograd), before_(autograd.local().saved_tensor_hooks) {
  autograd.local().saved_tensor_hooks =
      std::make_shared<const SavedTensorHookFrame>(SavedTensorHookFrame{std::move(hooks), before_});
}

SavedTensorHooksScope::~SavedTensorHooksScope() {
  autograd_.local().saved_tensor_hooks = before_;
}

}  // namespace zeroproof

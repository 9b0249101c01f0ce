#include "model/saved_tensor.h"

#include "model/autograd_error.h"
#include "model/node.h"
#include "model/tensor_impl.h"

namespace zeroproof {

SavedTensor::SavedTensor(const Tensor& tensor, bool is_output) : is_output_(is_output) {
  if (!tensor.is_defined()) return;
  tensor_ = is_output ? tensor.detach() : tensor;
  version_ = tensor.impl().storage->version;
  output_nr_ = tensor.output_nr();
}

Tensor SavedTensor::unpack(const std::shared_ptr<Node>& owner) const {
  if (is_released_) {
    throw AutogradError(
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Specify retain_graph=True");
  }
  if (!tensor_.is_defined()) return tensor_;
  if (tensor_.impl().storage->version != version_) {
    throw AutogradError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation");
  }
  if (!is_output_) return tensor_;
  Tensor output = tensor_.detach();
  output.impl().grad_fn = owner;
  output.impl().output_nr = output_nr_;
  return output;
}

void SavedTensor::release() {
  tensor_ = Tensor();
  is_released_ = true;
}

}  // namespace zeroproof

#pragma once

#include <memory>
#include <vector>

#include "zeroproof/internal/model/transforms/transform_frame.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

// Elements that a device keeps in their own dtype; only the runtime that made them follows them.
class DeviceElements {
 public:
  virtual ~DeviceElements() = default;
  // Those of `tensor` in row-major order, after all work queued on the compute stream.
  virtual std::vector<double> read(const TensorImpl& tensor) const = 0;
};

// The elements that tensors share; every write in place raises the version (rule S2).
struct Storage {
  std::vector<double> elements;            // empty where a device keeps them
  std::shared_ptr<DeviceElements> device;  // null: `elements` has them
  std::uint32_t version = 0;
  std::shared_ptr<void> lease;  // the memory's account; goes with the last tensor on it
};

// What a Tensor is a handle on. For the files of the graph; programs use Tensor.
struct TensorImpl {
  std::shared_ptr<Storage> storage;
  Shape sizes;
  Shape strides;
  std::int64_t offset_elements = 0;
  DType dtype = DType::float64;
  Device device;
  bool is_view = false;
  bool is_wrapped_number = false;

  bool requires_grad = false;  // of a leaf; a non-leaf has a grad_fn
  bool retains_grad = false;
  std::uint32_t output_nr = 0;
  std::shared_ptr<Node> grad_fn;
  std::weak_ptr<Node> accumulate_grad;  // rule A1: graphs own it, the leaf only knows it
  Tensor grad;
  HookList<Tensor::Hook> hooks;  // of a leaf (rule A2)
  HookList<Tensor::PostAccumulateHook> post_accumulate_hooks;
  std::unique_ptr<TensorWrapper> wrapper;  // its storage is null when it hides a batch dimension
};

// Calls visit(offset into the storage) for every element, in row-major order.
template <class Visit>
void for_each_offset(const TensorImpl& tensor, Visit visit) {
  const std::size_t dims = tensor.sizes.size();
  const std::int64_t count = numel(tensor.sizes);
  Shape index(dims, 0);
  std::int64_t offset = tensor.offset_elements;
  for (std::int64_t i = 0; i < count; ++i) {
    visit(static_cast<std::size_t>(offset));
    for (std::size_t d = dims; d-- > 0;) {
      offset += tensor.strides[d];
      if (++index[d] < tensor.sizes[d]) break;
      offset -= tensor.strides[d] * tensor.sizes[d];
      index[d] = 0;
    }
  }
}

}  // namespace zeroproof

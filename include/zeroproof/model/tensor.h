#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "zeroproof/model/device.h"
#include "zeroproof/model/dtype.h"
#include "zeroproof/model/hooks.h"

namespace zeroproof {

class Node;
struct Storage;
struct TensorImpl;
struct TensorWrapper;

using Shape = std::vector<std::int64_t>;  // sizes or strides, in elements; empty: a scalar

std::int64_t numel(const Shape& sizes);
Shape contiguous_strides(const Shape& sizes);

// A cheap handle on a strided tensor and its autograd record; copies name the same tensor. A
// default-constructed one is undefined: the gradient that is not there. Not thread-safe.
class Tensor {
 public:
  // May return a replacement; an undefined tensor keeps the gradient (rule H7).
  using Hook = std::function<Tensor(const Tensor& grad)>;
  using PostAccumulateHook = std::function<void(const Tensor& leaf)>;

  Tensor() = default;
  explicit Tensor(std::shared_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}

  // Leaves without requires_grad. Values are rounded to the dtype.
  static Tensor of(const std::vector<double>& values, Shape sizes, DType dtype = DType::float64);
  static Tensor full(Shape sizes, double value, DType dtype = DType::float64);

  // A number that Python wraps into a tensor of one element: no hook sees it saved.
  static Tensor number(double value, DType dtype);

  bool is_defined() const { return impl_ != nullptr; }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  long use_count() const { return impl_.use_count(); }

  const Shape& sizes() const;
  const Shape& strides() const;
  DType dtype() const;
  Device device() const;
  std::int64_t numel() const;
  bool is_contiguous() const;
  bool shares_storage_with(const Tensor& other) const { return storage_id() == other.storage_id(); }
  const Storage* storage_id() const;   // to compare, not to follow
  std::vector<double> values() const;  // row-major
  double item() const;                 // of a one-element tensor

  // Same storage, same sizes, no graph at any level of function transforms.
  Tensor detach() const;
  // The same without a graph at its own level only.
  Tensor shallow_copy() const;
  // Same storage seen with other sizes and strides; no graph. The caller keeps inside the storage.
  Tensor as_strided(Shape sizes, Shape strides, std::int64_t offset_elements) const;
  // A copy that counts as living on `device`; no graph.
  Tensor on(Device device) const;
  // `tensor.data = other`: the storage and shape of `other` under the identity of this one. Its
  // AccumulateGrad stays unless the dtype or the device changes (rule A6). AutogradError where a
  // level of function transforms is involved (rule T9).
  void set_data(const Tensor& other) const;

  bool requires_grad() const;
  bool is_leaf() const;
  // Of a leaf only.
  void set_requires_grad(bool requires_grad) const;

  Tensor grad() const;
  void set_grad(Tensor grad) const;
  std::shared_ptr<Node> grad_fn() const;
  std::uint32_t output_nr() const;

  // Tensor pre hook: on the leaf, or on this output of its grad_fn (rules H1, H2).
  HookHandle register_hook(Hook hook) const;
  // Leaves only; runs after every accumulation (rules H3, A3).
  HookHandle register_post_accumulate_grad_hook(PostAccumulateHook hook) const;
  // Keeps the gradient of a non-leaf, as it is after its tensor hooks; no effect on a leaf.
  void retain_grad() const;

  // Null for a tensor of no function transform; see model/transforms/.
  const TensorWrapper* wrapper() const;

  TensorImpl& impl() const { return *impl_; }
  const std::shared_ptr<TensorImpl>& shared_impl() const { return impl_; }

 private:
  std::shared_ptr<TensorImpl> impl_;
};

using TensorList = std::vector<Tensor>;

}  // namespace zeroproof

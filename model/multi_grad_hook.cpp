#include "model/multi_grad_hook.h"

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "model/accumulate_grad.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof {
namespace {

// Registers make_hook(0), make_hook(1), … on the tensors; the handle takes all of them away.
template <class MakeHook>
HookHandle register_on_each(const TensorList& tensors, const MakeHook& make_hook) {
  std::vector<HookHandle> handles;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    handles.push_back(tensors[i].register_hook(make_hook(i)));
  return HookHandle([handles = std::move(handles)]() mutable {
    for (HookHandle& handle : handles) handle.remove();
  });
}

class MultiGradHook {
 public:
  MultiGradHook(Autograd& autograd, const TensorList& tensors,
                std::function<void(const TensorList&)> hook)
      : autograd_(autograd), hook_(std::move(hook)) {
    for (const Tensor& tensor : tensors) tensors_.emplace_back(tensor.shared_impl());
  }

  void on_grad(std::size_t index, const Tensor& grad) {
    const GraphTaskId task = autograd_.current_graph_task();
    Pending& pending = pending_[task];
    if (pending.calls == 0) {
      expected_ = count_reached();
      pending.grads.resize(tensors_.size());
    }
    pending.grads[index] = grad;
    if (++pending.calls != expected_) return;
    const TensorList grads = std::move(pending.grads);
    pending_.erase(task);
    hook_(grads);
  }

 private:
  struct Pending {
    std::size_t calls = 0;
    TensorList grads;
  };

  std::size_t count_reached() const {
    std::size_t count = 0;
    for (const auto& weak : tensors_) {
      const Tensor tensor(weak.lock());
      if (!tensor.is_defined()) continue;
      const auto node = tensor.is_leaf() ? find_accumulate_grad(tensor) : tensor.grad_fn();
      if (node && autograd_.will_execute(*node)) ++count;
    }
    return count;
  }

  Autograd& autograd_;
  std::function<void(const TensorList&)> hook_;
  std::vector<std::weak_ptr<TensorImpl>> tensors_;  // they own the hook
  std::map<GraphTaskId, Pending> pending_;
  std::size_t expected_ = 0;  // by the task that began last: PyTorch keeps one for all tasks
};

}  // namespace

HookHandle register_multi_grad_hook(Autograd& autograd, const TensorList& tensors,
                                    std::function<void(const TensorList& grads)> hook) {
  const auto state = std::make_shared<MultiGradHook>(autograd, tensors, std::move(hook));
  return register_on_each(tensors, [&](std::size_t i) {
    return [state, i](const Tensor& grad) {
      state->on_grad(i, grad);
      return Tensor();
    };
  });
}

HookHandle register_any_grad_hook(Autograd& autograd, const TensorList& tensors,
                                  std::function<void(const Tensor& grad)> hook) {
  const auto fired = std::make_shared<std::set<GraphTaskId>>();
  TensorList differentiable = tensors;
  std::erase_if(differentiable, [](const Tensor& tensor) { return !tensor.requires_grad(); });
  return register_on_each(differentiable, [&](std::size_t) {
    return [&autograd, fired, hook](const Tensor& grad) {
      if (fired->insert(autograd.current_graph_task()).second) hook(grad);
      return Tensor();
    };
  });
}

}  // namespace zeroproof

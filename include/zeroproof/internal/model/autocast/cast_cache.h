#pragma once

#include <map>
#include <memory>

#include "zeroproof/model/tensor.h"

namespace zeroproof {

// Casts of leaves that later uses share (rule M1). By tensor alone: neither the dtype of the cast
// nor a later change of the leaf's values matters, as upstream. One a process.
class CastCache {
 public:
  // Undefined when there is none.
  Tensor find(const Tensor& leaf) const {
    const auto at = casts_.find(leaf.shared_impl());
    return at == casts_.end() ? Tensor() : at->second;
  }
  void keep(const Tensor& leaf, Tensor cast) { casts_[leaf.shared_impl()] = std::move(cast); }
  void clear() { casts_.clear(); }

 private:
  std::map<std::weak_ptr<TensorImpl>, Tensor, std::owner_less<>> casts_;
};

// What a thread keeps for autocast and graph tasks do not carry (docs/spec/autograd.md 15).
struct AutocastNesting {
  int regions = 0;  // entered and not left
  bool is_cache_enabled = true;
};

}  // namespace zeroproof

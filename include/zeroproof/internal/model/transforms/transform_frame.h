#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "zeroproof/model/tensor.h"

namespace zeroproof {

enum class TransformKind : std::uint8_t { grad, vmap, jvp };

// PyTorch's word: "Grad". Static.
std::string_view transform_name(TransformKind kind);

// One level of the interpreter stack of function transforms (rules T1 to T4).
struct TransformFrame {
  TransformKind kind = TransformKind::grad;
  std::int32_t level = 1;                       // height of the stack with it
  bool is_grad_enabled_below = true;            // grad mode when the transform was entered (T2)
  std::int64_t batch_size = 0;                  // vmap
  std::shared_ptr<bool> is_alive;               // false once popped: its wrappers are dead (T4)
  std::shared_ptr<const TransformFrame> below;  // null: level 0
};

// What makes a tensor one of a level: it stands for `inner`, a tensor of the level below.
struct TensorWrapper {
  TransformKind kind = TransformKind::grad;
  std::int32_t level = 1;
  Tensor inner;    // vmap: the batch is its first dimension, which the wrapper does not show
  Tensor tangent;  // jvp; undefined: zero
  std::shared_ptr<const bool> is_alive;
};

// A tensor of `frame` around `inner`: same numbers, no graph at this level.
Tensor wrap(const TransformFrame& frame, const Tensor& inner);
Tensor wrap_with_tangent(const TransformFrame& frame, const Tensor& primal, const Tensor& tangent);

// The tensor without wrappers of levels that were popped.
Tensor without_dead_wrappers(const Tensor& tensor);

// Whether it belongs to a level that was not popped yet.
bool is_live_wrapper(const Tensor& tensor);

// Whether `tensor` is a live wrapper of exactly this level.
bool is_of_level(const Tensor& tensor, const TransformFrame& frame);

// The tensor that a wrapper of this level stands for; any other tensor is itself.
Tensor unwrap(const Tensor& tensor, const TransformFrame& frame);

}  // namespace zeroproof

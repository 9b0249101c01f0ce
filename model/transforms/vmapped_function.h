#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/custom_function.h"

namespace zeroproof {

class Autograd;
struct TransformFrame;

// A custom Function one level below a vmap, made of the Function itself (generate_vmap_rule):
// forward, setup_context and backward each run under a fresh vmap level on batched tensors, so
// that whatever they do or keep is about one example. For model/custom_function.cpp only.
class VmappedFunction {
 public:
  VmappedFunction(Autograd& ag, CustomFunction function, std::vector<bool> is_batched,
                  std::int64_t batch_size);

  TensorList forward(const TensorList& inputs);
  void setup_context(FunctionContext& context, const TensorList& inputs,
                     const TensorList& outputs) const;
  TensorList backward(FunctionContext& context, const TensorList& grads) const;

  // Known once forward has run.
  bool is_output_batched(std::size_t i) const { return is_output_batched_.at(i); }
  const std::string& name() const { return name_; }

 private:
  struct Kept;

  Tensor to_input(const Tensor& grad, bool is_grad_batched, std::size_t input,
                  const Shape& sizes) const;

  Autograd& ag_;
  CustomFunction function_;
  std::vector<bool> is_batched_;
  std::int64_t batch_size_;
  std::string name_;
  std::vector<bool> is_output_batched_;
};

// Shares `vmapped`.
CustomFunction vmapped_function(const std::shared_ptr<VmappedFunction>& vmapped);

}  // namespace zeroproof

#pragma once

#include <memory>

#include "model/custom_function.h"
#include "model/transforms/transforms.h"
#include "props/train/layer.h"
#include "props/train/models.h"

namespace zeroproof::train {

// When a distillation loss takes its gradients, by grad_and_value over weight and input.
enum class KdMoment : std::uint8_t {
  forward,   // inside the forward of a Function, as fused linear losses do
  backward,  // inside the backward of the Function
  never,     // the same loss as ordinary operations
};

// A layer and its loss, a scalar. "weight" [3, 6].
class KdHead final : public nn::Module {
 public:
  KdHead(nn::InitStream& init, DataMode data, KdMoment moment);

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override;

 private:
  Tensor loss(Autograd& ag, const TensorList& given) const;
  func::GradAndValue differentiate(Autograd& ag, const TensorList& given) const;
  CustomFunction early_function(Autograd& ag) const;
  CustomFunction late_function(Autograd& ag) const;

  DataMode data_;
  KdMoment moment_;
  Tensor& weight_;
};

}  // namespace zeroproof::train

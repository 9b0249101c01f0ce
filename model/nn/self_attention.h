#pragma once

#include <memory>

#include "model/functions/attention.h"
#include "zeroproof/model/nn/mlp.h"

namespace zeroproof::nn {

struct AttentionSizes {
  std::int64_t width = 0;
  std::int64_t heads = 1;  // divides the width
  Causal causal = Causal::no;
  DType dtype = DType::float64;
};

// Of [batch, length, width]: "qkv" in one linear layer, heads, "out". AutogradError for other
// shapes and heads that do not divide the width.
class SelfAttention final : public Module {
 public:
  SelfAttention(InitStream& init, const AttentionSizes& sizes);

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override;

 private:
  Tensor heads_of(Autograd& ag, const Tensor& x) const;

  AttentionSizes sizes_;
  std::shared_ptr<Linear> qkv_;
  std::shared_ptr<Linear> out_;
};

}  // namespace zeroproof::nn

#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/nn/embedding.h"
#include "model/nn/mixture.h"
#include "model/nn/norm.h"
#include "model/nn/self_attention.h"

namespace zeroproof::nn {

struct BlockSizes {
  std::int64_t width = 0;
  std::int64_t heads = 1;
  std::int64_t hidden = 0;
  Activation activation = Activation::gelu;
  Causal causal = Causal::yes;
  DType dtype = DType::float64;
};

// x + attention(norm1(x)), then x + mlp(norm2(x)).
class TransformerBlock final : public Module {
 public:
  TransformerBlock(InitStream& init, const BlockSizes& sizes);

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override;

 private:
  std::shared_ptr<LayerNorm> norm1_;
  std::shared_ptr<SelfAttention> attention_;
  std::shared_ptr<LayerNorm> norm2_;
  std::shared_ptr<Mlp> mlp_;
};

enum class Head : bool { own, tied };  // tied: its weight is the embedding's, one tensor

struct LanguageModelSizes {
  std::int64_t vocabulary = 0;
  std::int64_t length = 0;  // longest input
  std::int64_t layers = 1;
  BlockSizes block;
  Head head = Head::own;
};

// Token numbers [batch, length] to logits [batch, length, vocabulary].
class LanguageModel final : public Module {
 public:
  LanguageModel(InitStream& init, const LanguageModelSizes& sizes);

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override;

 private:
  std::shared_ptr<Embedding> tokens_;
  std::shared_ptr<Embedding> positions_;
  std::vector<std::shared_ptr<TransformerBlock>> blocks_;
  std::shared_ptr<LayerNorm> norm_;
  std::shared_ptr<Linear> head_;
};

}  // namespace zeroproof::nn

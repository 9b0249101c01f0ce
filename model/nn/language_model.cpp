#include "model/nn/language_model.h"

#include <numbers>
#include <string>

#include "zeroproof/model/autograd_error.h"

namespace zeroproof::nn {
namespace {

std::shared_ptr<LayerNorm> make_norm(const BlockSizes& sizes) {
  return std::make_shared<LayerNorm>(constant_parameter({sizes.width}, 1.0, sizes.dtype),
                                     constant_parameter({sizes.width}, 0.0, sizes.dtype));
}

// Of variance 1, as upstream's normal distribution.
std::shared_ptr<Embedding> make_embedding(InitStream& init, const Shape& sizes, DType dtype) {
  return std::make_shared<Embedding>(init.parameter(sizes, std::numbers::sqrt3, dtype));
}

AttentionSizes attention_sizes(const BlockSizes& sizes) {
  return {sizes.width, sizes.heads, sizes.causal, sizes.dtype};
}

MlpSizes mlp_sizes(const BlockSizes& sizes) {
  return {sizes.width, sizes.hidden, sizes.activation, sizes.dtype};
}

}  // namespace

TransformerBlock::TransformerBlock(InitStream& init, const BlockSizes& sizes)
    : norm1_(register_module("norm1", make_norm(sizes))),
      attention_(register_module("attention",
                                 std::make_shared<SelfAttention>(init, attention_sizes(sizes)))),
      norm2_(register_module("norm2", make_norm(sizes))),
      mlp_(register_module("mlp", std::make_shared<Mlp>(init, mlp_sizes(sizes)))) {}

TensorList TransformerBlock::forward(Autograd& ag, const TensorList& inputs) const {
  const Tensor& x = inputs.at(0);
  const Tensor attended = add(ag, x, (*attention_)(ag, (*norm1_)(ag, x)));
  return {add(ag, attended, (*mlp_)(ag, (*norm2_)(ag, attended)))};
}

LanguageModel::LanguageModel(InitStream& init, const LanguageModelSizes& sizes) {
  const BlockSizes& block = sizes.block;
  tokens_ =
      register_module("tokens", make_embedding(init, {sizes.vocabulary, block.width}, block.dtype));
  positions_ =
      register_module("positions", make_embedding(init, {sizes.length, block.width}, block.dtype));
  for (std::int64_t i = 0; i < sizes.layers; ++i)
    blocks_.push_back(register_module("blocks." + std::to_string(i),
                                      std::make_shared<TransformerBlock>(init, block)));
  norm_ = register_module("norm", make_norm(block));
  const auto own_head = [&] {
    return make_linear(init, {.inputs = block.width,
                              .outputs = sizes.vocabulary,
                              .has_bias = false,
                              .dtype = block.dtype});
  };
  head_ = register_module(
      "head", sizes.head == Head::tied ? std::make_shared<Linear>(tokens_->weight) : own_head());
}

TensorList LanguageModel::forward(Autograd& ag, const TensorList& inputs) const {
  const Tensor& tokens = inputs.at(0);
  if (tokens.sizes().size() != 2) throw AutogradError("token numbers come as [batch, length]");
  std::vector<double> positions;
  for (std::int64_t i = 0; i < tokens.sizes()[1]; ++i) positions.push_back(static_cast<double>(i));
  const Tensor where = Tensor::of(positions, {tokens.sizes()[1]});
  Tensor x = add(ag, (*tokens_)(ag, tokens), (*positions_)(ag, where));
  for (const auto& block : blocks_) x = (*block)(ag, x);
  return {(*head_)(ag, (*norm_)(ag, x))};
}

}  // namespace zeroproof::nn

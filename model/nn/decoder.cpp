#include "model/nn/decoder.h"

#include <utility>

#include "model/check.h"
#include "zeroproof/internal/model/fused_ops.h"
#include "zeroproof/model/nn/init.h"

namespace zeroproof::nn {
namespace {

constexpr double kDeviation = 0.02;

}  // namespace

DecoderSizes DecoderSizes::m267() {
  return {.width = 1024, .layers = 24, .heads = 16, .hidden = 2048, .vocabulary = 32000};
}

DecoderSizes DecoderSizes::tiny() {
  return {.width = 128, .layers = 2, .heads = 2, .hidden = 256, .vocabulary = 512};
}

std::vector<ParameterShape> parameter_shapes(const DecoderSizes& sizes) {
  const std::int64_t width = sizes.width;
  std::vector<ParameterShape> shapes = {{"tok_emb.weight", {sizes.vocabulary, width}}};
  for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::string at = "layers." + std::to_string(layer) + ".";
    shapes.push_back({at + "attn_norm.weight", {width}});
    shapes.push_back({at + "wqkv.weight", {3 * width, width}});
    shapes.push_back({at + "wo.weight", {width, width}});
    shapes.push_back({at + "mlp_norm.weight", {width}});
    shapes.push_back({at + "w1.weight", {sizes.hidden, width}});
    shapes.push_back({at + "w2.weight", {width, sizes.hidden}});
  }
  shapes.push_back({"final_norm.weight", {width}});
  shapes.push_back({"lm_head.weight", {sizes.vocabulary, width}});
  return shapes;
}

// Tensor i has the launch i of one generator.
class DecoderInit {
 public:
  DecoderInit(const DecoderSizes& sizes, std::uint64_t seed, DType dtype)
      : shapes_(parameter_shapes(sizes)), seed_(seed), dtype_(dtype) {}

  Tensor next() {
    const std::size_t index = next_++;
    const Shape& sizes = shapes_.at(index).sizes;
    if (sizes.size() == 1) return constant_parameter(sizes, 1.0, dtype_);
    return normal_parameter({.seed = seed_, .offset = 4 * index}, sizes, kDeviation, dtype_);
  }

 private:
  std::vector<ParameterShape> shapes_;
  std::uint64_t seed_;
  DType dtype_;
  std::size_t next_ = 0;
};

DecoderBlock::DecoderBlock(DecoderInit& init, const DecoderSizes& sizes) : heads_(sizes.heads) {
  const auto norm = [&] { return std::make_shared<AddRmsNorm>(init.next(), sizes.eps); };
  const auto matrix = [&] { return std::make_shared<Linear>(init.next()); };
  attn_norm_ = register_module("attn_norm", norm());
  wqkv_ = register_module("wqkv", matrix());
  wo_ = register_module("wo", matrix());
  mlp_norm_ = register_module("mlp_norm", norm());
  w1_ = register_module("w1", matrix());
  w2_ = register_module("w2", matrix());
}

TensorList DecoderBlock::forward(Autograd& ag, const TensorList& inputs) const {
  const TensorList first = (*attn_norm_)(ag, inputs);
  const Tensor attended = fused::causal_attention(ag, (*wqkv_)(ag, first[1]), heads_);
  const TensorList second = (*mlp_norm_)(ag, {(*wo_)(ag, attended), first[0]});
  return {(*w2_)(ag, fused::gelu(ag, (*w1_)(ag, second[1]))), second[0]};
}

Decoder::Decoder(const DecoderSizes& sizes, std::uint64_t seed, DType dtype) {
  ZP_CHECK(sizes.width == sizes.heads * kHeadWidth, "a decoder's heads are 64 wide");
  DecoderInit init(sizes, seed, dtype);
  tok_emb_ = register_module("tok_emb", std::make_shared<FusedEmbedding>(init.next()));
  for (std::int64_t layer = 0; layer < sizes.layers; ++layer)
    layers_.push_back(register_module("layers." + std::to_string(layer),
                                      std::make_shared<DecoderBlock>(init, sizes)));
  final_norm_ = register_module("final_norm", std::make_shared<AddRmsNorm>(init.next(), sizes.eps));
  lm_head_ = register_module("lm_head", std::make_shared<Linear>(init.next()));
}

TensorList Decoder::forward(Autograd& ag, const TensorList& inputs) const {
  TensorList stream = {(*tok_emb_)(ag, inputs.at(0)), Tensor()};
  for (const auto& layer : layers_) stream = (*layer)(ag, std::move(stream));
  const Tensor y = (*final_norm_)(ag, std::move(stream))[1];
  const std::int64_t rows = inputs[0].numel();
  const Tensor logits = (*lm_head_)(ag, view(ag, y, {rows, y.sizes().back()}));
  if (inputs.size() < 2) return {logits};
  return {fused::cross_entropy(ag, logits, view(ag, inputs[1], {rows}))};
}

}  // namespace zeroproof::nn

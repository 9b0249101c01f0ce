#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/nn/fused.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof::nn {

// Heads are 64 wide, so the width is 64 times their number.
struct DecoderSizes {
  std::int64_t width = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  double eps = 1e-5;

  static DecoderSizes m267();  // 147 tensors of 266,912,768 values (docs/spec/performance.md 1)
  static DecoderSizes tiny();  // the same for a test: 15 tensors of 393,856 values
};

struct ParameterShape {
  std::string name;
  Shape sizes;
};

// What a Decoder registers, in its order, without making it.
std::vector<ParameterShape> parameter_shapes(const DecoderSizes& sizes);

// Where the parameters of a decoder come from, in the order of parameter_shapes().
class DecoderInit;

// x += wo attention(norm(x)), then x += w2 gelu(w1 norm(x)). The sum is formed by the norm that
// follows: from {x, residual or undefined} to {what is to be added, residual}.
class DecoderBlock final : public Module {
 public:
  DecoderBlock(DecoderInit& init, const DecoderSizes& sizes);

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override;

 private:
  std::int64_t heads_;
  std::shared_ptr<AddRmsNorm> attn_norm_;
  std::shared_ptr<Linear> wqkv_;
  std::shared_ptr<Linear> wo_;
  std::shared_ptr<AddRmsNorm> mlp_norm_;
  std::shared_ptr<Linear> w1_;
  std::shared_ptr<Linear> w2_;
};

// A pre-norm transformer decoder on the fused operations, without biases, its head not tied to the
// embedding. From {ids [batch, length], targets [batch, length]} to {the mean cross entropy};
// from {ids} alone to {logits [batch * length, vocabulary]}. Both hold whole numbers as float32.
class Decoder final : public Module {
 public:
  // Matrices are normal with deviation 0.02, norms one; every value follows from the seed and its
  // place alone. CheckFailed for a width that is not 64 times the heads.
  Decoder(const DecoderSizes& sizes, std::uint64_t seed, DType dtype = DType::float32);

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override;

 private:
  std::shared_ptr<FusedEmbedding> tok_emb_;
  std::vector<std::shared_ptr<DecoderBlock>> layers_;
  std::shared_ptr<AddRmsNorm> final_norm_;
  std::shared_ptr<Linear> lm_head_;
};

}  // namespace zeroproof::nn

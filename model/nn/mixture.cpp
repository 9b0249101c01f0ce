#include "model/nn/mixture.h"

#include <string>

#include "model/functions/activations.h"

namespace zeroproof::nn {

Mixture::Mixture(InitStream& init, const MixtureSizes& sizes)
    : sizes_(sizes),
      gate_(register_module("gate", make_linear(init, {.inputs = sizes.expert.width,
                                                       .outputs = sizes.experts,
                                                       .has_bias = false,
                                                       .dtype = sizes.expert.dtype}))) {
  for (std::int64_t i = 0; i < sizes.experts; ++i)
    experts_.push_back(
        register_module("experts." + std::to_string(i), std::make_shared<Mlp>(init, sizes.expert)));
}

Mixture::Share Mixture::share_of(const Largest& top, std::int64_t expert) const {
  Share share;
  for (std::size_t i = 0; i < top.indices.values.size(); ++i) {
    if (top.indices.values[i] != expert) continue;
    share.weights.push_back(static_cast<std::int64_t>(i));
    share.tokens.push_back(share.weights.back() / sizes_.top_k);
  }
  return share;
}

TensorList Mixture::forward(Autograd& ag, const TensorList& inputs) const {
  const Shape& sizes = inputs.at(0).sizes();
  const std::int64_t width = sizes_.expert.width;
  const Tensor x = reshape(ag, inputs[0], {inputs[0].numel() / width, width});
  const Largest top = topk(ag, softmax(ag, (*gate_)(ag, x), 1), sizes_.top_k, 1);
  Tensor weights = top.values;
  if (sizes_.top_k > 1) weights = div(ag, weights, sum(ag, weights, {1}, KeepDim::yes));
  weights = reshape(ag, weights, {weights.numel(), 1});

  Tensor total = Tensor::full(x.sizes(), 0.0, x.dtype());
  for (std::size_t i = 0; i < experts_.size(); ++i) {
    const Share share = share_of(top, static_cast<std::int64_t>(i));
    if (share.tokens.empty()) continue;
    const Tensor out = (*experts_[i])(ag, index_select(ag, x, 0, share.tokens));
    const Tensor weighted = mul(ag, out, index_select(ag, weights, 0, share.weights));
    total = index_add(ag, total, 0, share.tokens, weighted);
  }
  return {view(ag, total, sizes)};
}

}  // namespace zeroproof::nn

#include "model/nn/self_attention.h"

#include "zeroproof/model/autograd_error.h"

namespace zeroproof::nn {

SelfAttention::SelfAttention(InitStream& init, const AttentionSizes& sizes)
    : sizes_(sizes),
      qkv_(register_module("qkv", make_linear(init, {.inputs = sizes.width,
                                                     .outputs = 3 * sizes.width,
                                                     .dtype = sizes.dtype}))),
      out_(register_module("out", make_linear(init, {.inputs = sizes.width,
                                                     .outputs = sizes.width,
                                                     .dtype = sizes.dtype}))) {
  if (sizes.heads < 1 || sizes.width % sizes.heads != 0)
    throw AutogradError("embed_dim must be divisible by num_heads");
}

// From [batch, length, width] to [batch, heads, length, width of a head].
Tensor SelfAttention::heads_of(Autograd& ag, const Tensor& x) const {
  const Shape& sizes = x.sizes();
  const Shape split = {sizes[0], sizes[1], sizes_.heads, sizes_.width / sizes_.heads};
  return transpose(ag, reshape(ag, x, split), 1, 2);
}

TensorList SelfAttention::forward(Autograd& ag, const TensorList& inputs) const {
  const Tensor& x = inputs.at(0);
  if (x.sizes().size() != 3) throw AutogradError("attention needs [batch, length, width]");
  const TensorList parts = chunk(ag, (*qkv_)(ag, x), 3, 2);
  const AttentionInputs heads = {heads_of(ag, parts[0]), heads_of(ag, parts[1]),
                                 heads_of(ag, parts[2])};
  const Tensor mixed = scaled_dot_product_attention(ag, heads, sizes_.causal);
  return {(*out_)(ag, reshape(ag, transpose(ag, mixed, 1, 2), x.sizes()))};
}

}  // namespace zeroproof::nn

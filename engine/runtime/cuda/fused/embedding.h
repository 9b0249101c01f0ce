#pragma once

#include "engine/runtime/cuda/fused/device_types.h"

namespace zeroproof::cuda {

// out[token] = table[ids[token]]; width a multiple of 8. An id outside the vocabulary gives NaNs.
struct EmbeddingForward {
  const Bf16* table;        // [vocab, width]
  const std::int32_t* ids;  // [tokens]
  Bf16* out;                // [tokens, width]
  int tokens;
  int vocab;
  int width;
};
cudaError_t embedding_forward(const EmbeddingForward& args, cudaStream_t stream);

// dtable[v] = sum of dout[token] over the tokens with id v, from the first token to the last, in
// fp32, rounded once. Every row is written, by one block: no float is added atomically, and two
// runs give equal bits. The tokens of a row are found by counting (count, scan, place) and put in
// order within the row. With `is_accumulating` the old row is added last.
struct EmbeddingBackward {
  const Bf16* dout;         // [tokens, width]
  const std::int32_t* ids;  // [tokens]; those outside the vocabulary are left out
  Bf16* dtable;             // [vocab, width]
  std::int32_t* workspace;  // embedding_workspace_ints(tokens, vocab)
  int tokens;
  int vocab;
  int width;
  bool is_accumulating;
};
std::int64_t embedding_workspace_ints(int tokens, int vocab);
cudaError_t embedding_backward(const EmbeddingBackward& args, cudaStream_t stream);

}  // namespace zeroproof::cuda

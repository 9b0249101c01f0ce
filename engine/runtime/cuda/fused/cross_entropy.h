#pragma once

#include "engine/runtime/cuda/fused/device_types.h"

namespace zeroproof::cuda {

// losses[row] = log(sum(exp(logits))) - logits[target], softmax in fp32; then, over the logits,
//   dlogits = (softmax - one_hot(target)) * grad_scale
// One read and one write of a row, which waits in shared memory between the two. `vocab` is a
// multiple of 8, at most kCrossEntropyVocabMax. A target outside the vocabulary makes its loss
// NaN and its row of dlogits the softmax alone.
struct CrossEntropy {
  Bf16* logits;                 // [rows, vocab]; becomes dlogits
  const std::int32_t* targets;  // [rows]
  float* losses;                // [rows]
  int rows;
  int vocab;
  float grad_scale;   // the factor / rows for a mean
  bool is_loss_only;  // leave the logits as they are
};

constexpr int kCrossEntropyVocabMax = 113152;  // 221 KB of shared memory

cudaError_t cross_entropy(const CrossEntropy& args, cudaStream_t stream);

// mean[0] = sum(values) / count * factor, added in double in a fixed order.
struct MeanLoss {
  const float* values;
  float* mean;
  int count;
  float factor;
};
cudaError_t mean_loss(const MeanLoss& args, cudaStream_t stream);

}  // namespace zeroproof::cuda

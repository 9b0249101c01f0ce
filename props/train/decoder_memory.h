#pragma once

#include <cstdint>

#include "props/train/decoder_cell.h"

namespace zeroproof::train {

// What one rank of a run has to keep at the same time, by formula, in bytes.
struct DecoderMemory {
  std::int64_t states = 0;  // weights, gradients, masters and both moments, as the stage shards
  std::int64_t activations = 0;  // all that a backward reads again, at the end of a forward
  std::int64_t staging = 0;      // of what GPUs copy from each other before they sum it

  std::int64_t total() const { return states + activations + staging; }
};

// States: of M values in a dtype of b bytes, N ranks: M (2 b + 12) in stage 0, M (2 b + 12 / N),
// M (b + (b + 12) / N), M (2 b + 12) / N (docs/spec/performance.md 3). Activations of a token: a
// layer keeps both normed sums, both norms, q, k and v, what attention gives, and both sides of the
// GELU; the head its normed sum, norm and logits; besides statistics in float32. Staging: one
// stream reduces, by copies where slices of a bucket are long enough.
DecoderMemory memory_of(const DecoderCell& cell);

}  // namespace zeroproof::train

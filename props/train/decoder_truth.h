#pragma once

#include <string>
#include <vector>

#include "props/train/decoder_cell.h"
#include "props/train/decoder_run.h"
#include "zeroproof/engine/full_tensor.h"
#include "zeroproof/internal/model/ops.h"

namespace zeroproof::train {

// The same training without an engine: one process, one module, whole masters.
struct DecoderTruth {
  std::vector<std::vector<double>> losses;  // by share, then by forward
  std::vector<FullTensor> initial;          // parameters before the first step
  std::vector<FullTensor> parameters;       // masters at the end
};

// The batch of all ranks in equal shares, one backward each; gradients are added in order, every
// partial sum rounded as on the wire. As many shares as ranks: what the engine has to equal bit for
// bit where the arithmetic is the same. One share: the concatenated batch.
DecoderTruth run_decoder_truth(const DecoderCell& cell, int shares, const Ops& ops);

// How far the engine's run is from the truth.
struct DecoderDistance {
  double loss = 0.0;       // the largest of any forward's, in parts of the loss
  double parameter = 0.0;  // the largest of any tensor: distance in parts of the way it went
  std::string tensor;      // that tensor; empty where all are bitwise equal
  bool is_bitwise = true;  // losses too
};

// Losses rank by rank, or of a truth in one share their mean where all ranks ran here.
DecoderDistance distance_of(const std::vector<DecoderRank>& ranks, const DecoderTruth& truth);

// What other orders of rounding may do: for a truth in one share, or another device's arithmetic.
struct DecoderBound {
  double loss = 0.0;
  double parameter = 0.0;
};
DecoderBound bound_of(Precision precision);

}  // namespace zeroproof::train

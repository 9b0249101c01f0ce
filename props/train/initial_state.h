#pragma once

#include <string>

#include "props/train/decoder_cell.h"
#include "zeroproof/model/result.h"

namespace zeroproof::train {

// What another program needs to train the same: a safetensors file
// (github.com/huggingface/safetensors) of the weights before the first step by their names, in
// float32, and as int32 `batches.ids` and `batches.targets`, [kBatchTurns, sequences of all ranks,
// length]. Appears complete or not at all; an error has the code usage.
Result<void> write_initial_state(const DecoderCell& cell, const std::string& path);

}  // namespace zeroproof::train

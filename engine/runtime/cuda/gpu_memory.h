#pragma once

#include <cstdint>

namespace zeroproof {

// Of the stream-ordered memory of this process's GPU with that number: the engine's and the model's
// with all that an iteration needs. Not the libraries' own, nor what the pool keeps for later.
// RuntimeFault where CUDA refuses. In a build without CUDA: 0, as no memory was ever used.
std::int64_t gpu_peak_bytes(int gpu);
void reset_gpu_peak(int gpu);

}  // namespace zeroproof

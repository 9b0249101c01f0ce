#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace zeroproof {

// Two parameters with Adam's states; `salt` sets them apart. No two values are equal.
TrainingState small_state(std::int64_t global_steps, double salt);

// Everything, every bit.
bool is_same_state(const TrainingState& a, const TrainingState& b);
bool is_same_tensor(const FullTensor& a, const FullTensor& b);
const FullTensor& tensor_named(const std::vector<FullTensor>& tensors, const std::string& name);

// Any state: names of any bytes, shapes with none and zero sizes, values of any bits that `dtype`
// has; to be called inside a RapidCheck property.
TrainingState any_state(DType dtype);

// Runs `body` once for each rank, in threads that take turns between barriers: always in the same
// order, first all ranks up to the first barrier, then all up to the second.
using RankBody = std::function<void(int rank, const std::function<void()>& barrier)>;
void run_ranks(int ranks, const RankBody& body);

struct ParallelSizes {
  int tensor = 1;
  int expert = 1;
};

// Saves one state a place, expert-major; the results in the same order.
std::vector<Result<void>> save_parts(const std::vector<TrainingState>& states, FileSystem& files,
                                     const SaveOptions& options, ParallelSizes sizes);

}  // namespace zeroproof

#pragma once

#include "engine/checkpoint/tensor_parallel.h"
#include "engine/files/posix_file_system.h"
#include "zeroproof/engine/engine.h"

namespace zeroproof {

inline FileSystem& files_of(const EngineCheckpointOptions& options) {
  return options.files ? *options.files : posix_file_system();
}

inline ParallelRank rank_in(const ProcessGroup& group) {
  return {.rank = group.rank(), .size = group.size()};
}

}  // namespace zeroproof

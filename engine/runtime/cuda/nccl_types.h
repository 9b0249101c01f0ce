#pragma once

#include <nccl.h>

#include "zeroproof/internal/engine/runtime/process_group.h"

namespace zeroproof::cuda {

// NCCL's names of ours.
ncclDataType_t type_of(DType dtype);
ncclRedOp_t op_of(ReduceOp op);

}  // namespace zeroproof::cuda

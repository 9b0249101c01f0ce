#pragma once

#include "props/train/case_spec.h"
#include "props/train/pass.h"

namespace zeroproof::train {

// The first engine under torch.func, as `idle_forward` of the micro-batch says: none of its own
// business. Its model must be armed. What comes of it is recorded.
void transform_engine(const MicroSpec& micro, Pass& pass);

}  // namespace zeroproof::train

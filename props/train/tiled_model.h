#pragma once

#include <memory>

#include "props/train/models.h"

namespace zeroproof::train {

// l1 and a head without bias, whose loss is made by tiles of the rows.
struct Tiling {
  // The tiles are ordinary operations; otherwise a Function differentiates each of them inside
  // its forward (TiledFusedLogitsLoss).
  bool is_ordinary = false;
  // A layer "inp" comes first, and l1 runs in a reentrant checkpoint unless tiles are ordinary.
  bool is_deep = false;
  // The head is that of kd_late, which differentiates once more in its backward.
  bool has_late_transform = false;
};

std::shared_ptr<nn::Module> make_tiled_model(const ModelOptions& options, const Tiling& tiling);

}  // namespace zeroproof::train

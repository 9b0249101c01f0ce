#pragma once

#include <string>

#include "model/result.h"
#include "props/train/train_cell.h"

namespace zeroproof {

// Puts the museum's fault of that id into the cell, with its quirks and policy; "" changes nothing.
Result<void> plant_in(train::TrainCell& cell, const std::string& id);

}  // namespace zeroproof

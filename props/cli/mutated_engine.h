#pragma once

#include <string>
#include <vector>

#include "props/interpreter/engine_target.h"
#include "props/train/train_cell.h"
#include "zeroproof/model/result.h"

// What needs the engine with faults woven in. The program beside this one has it (sibling.h): each
// of the two links its own twin of these functions.
namespace zeroproof {

// Which program beside this one such words are for: it runs in place of this one. Null: none.
const char* sibling_for(const std::vector<std::string>& words);

// The engines of that fault; of "" those without one.
Result<program::EngineVariant> variant_of_fault(const std::string& id);

// Puts the fault of that id into the cell, with its quirks and policy; "" has no effect.
Result<void> set_fault(train::TrainCell& cell, const std::string& id);

}  // namespace zeroproof

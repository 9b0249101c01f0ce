#pragma once

#include <string>

#include "engine/checkpoint/training_state.h"
#include "zeroproof/engine/files/file_system.h"

namespace zeroproof::program {

// Bit by bit, in whatever order the parameters are stored: each stage has its own.
bool is_same_state(const TrainingState& a, const TrainingState& b);

// Whether a save that was cut short left something in the folder.
bool has_leftovers(FileSystem& files, const std::string& folder);

}  // namespace zeroproof::program

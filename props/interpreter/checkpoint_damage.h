#pragma once

#include <string>

#include "engine/checkpoint/training_state.h"
#include "zeroproof/engine/files/file_system.h"

namespace zeroproof::program {

// Damages the newest checkpoint with this tag, or what says which one is the latest;
// the number says how and where.
void damage_checkpoint(FileSystem& files, const std::string& folder, const std::string& tag,
                       int number);
// By which tag such a checkpoint must not be loaded. `is_newest`: it is the latest one; else only
// damage to what names the latest is met by asking for that.
std::string damaged_tag(const std::string& tag, int number, bool is_newest = true);

// The same state as an engine with another model, optimizer or groups would have it.
TrainingState misfitted(TrainingState state, int number);

}  // namespace zeroproof::program

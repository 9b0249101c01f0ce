#pragma once

#include <cstdint>
#include <string>

#include "engine/checkpoint/training_state.h"
#include "props/train/case_spec.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/files/file_system.h"

namespace zeroproof::train {

// What is wrong with checkpoints of a program; the sum of some is recorded.
enum class CheckpointFault : std::uint16_t {
  none = 0,
  incomplete = 1,     // cannot be loaded by whoever has no engine
  unlike = 2,         // groups, counters or loss scale are not those of the engine
  left_behind = 4,    // a replaced checkpoint, or half a one
  other_rank = 8,     // another rank than the first wrote
  warnings = 16,      // not one of a load
  loss_scale = 32,    // a load changed one that is the user's
  not_restored = 64,  // what is saved behind a load is not what was loaded
  not_refused = 128,
  not_durable = 256,  // a power failure behind a save would take something of it
  untold = 512        // an error does not say of which file it is
};

// Whether the state says what the engine of the case is, and which parameters each group trains.
bool is_state_of(const TrainingState& state, const Engine& engine, const CaseSpec& spec);

// Every bit of it; `scaler`: of the loss scaler, too.
bool is_same_state(const TrainingState& a, const TrainingState& b, bool has_same_scaler);

// Whether the folder has one checkpoint of that tag (empty: of the latest one's).
bool has_one_of(FileSystem& files, const std::string& folder, const std::string& tag);
// What a save leaves that is cut short; and whether something of one is there, or in the newest
// checkpoint of that tag.
void leave_half(FileSystem& files, const std::string& folder);
bool has_leftovers(FileSystem& files, const std::string& folder, const std::string& tag);

}  // namespace zeroproof::train

#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/file_names.h"
#include "zeroproof/engine/files/file_system.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// The complete checkpoints of a folder, by name; none if it cannot be read.
std::vector<CheckpointName> checkpoints_in(FileSystem& files, const std::string& folder);

// The path of the newest checkpoint with this tag; empty: of the one that `latest` names. The
// error lists what is there.
Result<std::string> find_checkpoint(FileSystem& files, const std::string& folder,
                                    const std::string& tag);

}  // namespace zeroproof

#pragma once

#include "engine/files/ranged_file_system.h"

namespace zeroproof {

// The machine's own file system. Stateless; usable from every thread.
RangedFileSystem& posix_file_system();

}  // namespace zeroproof

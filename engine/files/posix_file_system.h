#pragma once

#include "zeroproof/engine/files/file_system.h"

namespace zeroproof {

// The machine's own file system. Stateless; usable from every thread.
FileSystem& posix_file_system();

}  // namespace zeroproof

#pragma once

#include <string>
#include <vector>

#include "props/museum/hunt.h"

namespace zeroproof::museum {

// Runs a specimen again, with the entry's fault or without (null), and writes what its ranks do: a
// hooktrace file a rank, named after `path` as train::rank_path() says. Returns their paths.
Result<std::vector<std::string>> write_specimen_traces(const Specimen& specimen, const Entry* entry,
                                                       const std::string& path);

}  // namespace zeroproof::museum

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/replay/diagnosis.h"

namespace zeroproof {

// Moments around some places of one file: for each clock of `lcs` the last significant events up to
// it, the event itself marked bad, and the first ones after it. Reads the file once more; what
// cannot be read is left out, since the first reading has reported it. Lists in the order of `lcs`.
std::vector<std::vector<DiagnosisMoment>> read_context(const std::string& path,
                                                       const std::vector<std::uint64_t>& lcs);

}  // namespace zeroproof

#include "sim/world/finding.h"

#include <array>

namespace zeroproof::sim {

std::string_view finding_name(FindingKind kind) {
  constexpr std::array<std::string_view, 5> kFindingNames = {
      "deadlock", "collective_mismatch", "use_after_free", "no_progress", "out_of_memory"};
  return kFindingNames[static_cast<std::size_t>(kind)];
}

}  // namespace zeroproof::sim

// Group E of the bug catalogue: collective congruence across ranks.
#include <array>

#include "props/museum/entry.h"

namespace zeroproof::museum {

std::span<const Entry> group_e() {
  return {};
}

}  // namespace zeroproof::museum

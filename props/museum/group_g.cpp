// Group G of the bug catalogue: streams, buffer reuse, storage lifetime.
#include <array>

#include "props/museum/entry.h"

namespace zeroproof::museum {

std::span<const Entry> group_g() {
  return {};
}

}  // namespace zeroproof::museum

// Group F of the bug catalogue: residency: gather, use, release.
#include <array>

#include "props/museum/entry.h"

namespace zeroproof::museum {

std::span<const Entry> group_f() {
  return {};
}

}  // namespace zeroproof::museum

#include "engine/files/small_file.h"

#include <fmt/format.h>

#include "engine/files/posix_file_system.h"

namespace zeroproof {

Result<std::string> read_small_file(const std::string& path, std::uint64_t bytes_max) {
  auto bytes = posix_file_system().read(path, bytes_max);
  if (bytes) return std::move(*bytes);
  return fail(ErrorCode::unreadable,
              fmt::format("{}: cannot be read: {}", path, bytes.error().reason));
}

}  // namespace zeroproof

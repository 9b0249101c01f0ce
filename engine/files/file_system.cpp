#include "zeroproof/engine/files/file_system.h"

namespace zeroproof {

FileResult<void> write_all(WritableFile& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto taken = file.write_some(bytes);
    if (!taken) return tl::unexpected(taken.error());
    if (*taken == 0 || *taken > bytes.size()) return file_fault("a write took no byte");
    bytes.remove_prefix(*taken);
  }
  return {};
}

FileResult<void> write_synced(FileSystem& files, const std::string& path, std::string_view bytes) {
  auto file = files.create(path);
  if (!file) return tl::unexpected(file.error());
  if (auto written = write_all(**file, bytes); !written) return written;
  return (*file)->sync();
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == path.npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace zeroproof

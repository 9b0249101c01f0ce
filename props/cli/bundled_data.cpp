#include "props/cli/bundled_data.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace zeroproof {

std::string bundled_traces_folder() {
  namespace fs = std::filesystem;
  std::error_code error;
  if (const char* folder = std::getenv("ZP_TRACES"); folder != nullptr) return folder;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = binary.parent_path().parent_path() / "share/zeroproof/traces";
  for (const fs::path& folder : {installed, fs::path(ZP_SOURCE_DIR "/tests/traces")}) {
    if (fs::is_directory(folder, error)) return folder.string();
  }
  return {};
}

}  // namespace zeroproof

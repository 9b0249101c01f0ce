#include "props/cli/bundled_data.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace zeroproof {

namespace {

namespace fs = std::filesystem;

// The first that exists: of an installation, of the source tree.
std::string bundled_folder(const char* name, const char* in_sources) {
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = binary.parent_path().parent_path() / "share/zeroproof" / name;
  for (const fs::path& folder : {installed, fs::path(in_sources)}) {
    if (fs::is_directory(folder, error)) return folder.string();
  }
  return {};
}

}  // namespace

std::string bundled_traces_folder() {
  if (const char* folder = std::getenv("ZP_TRACES"); folder != nullptr) return folder;
  return bundled_folder("traces", ZP_SOURCE_DIR "/tests/traces");
}

std::string bundled_subject_folder() {
  return bundled_folder("subject", ZP_SOURCE_DIR "/subject");
}

std::string bundled_recorder_folder() {
  return bundled_folder("recorder", ZP_SOURCE_DIR "/recorder");
}

}  // namespace zeroproof

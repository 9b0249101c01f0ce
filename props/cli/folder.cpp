#include "props/cli/folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace zeroproof {

Result<void> make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && std::filesystem::is_directory(path, error)) return {};
  return fail(ErrorCode::usage, fmt::format("{}: cannot make this folder: {}", path,
                                            error ? error.message() : "a file has its name"));
}

}  // namespace zeroproof

#include "props/replay/trace_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace zeroproof {
namespace {

namespace fs = std::filesystem;

bool is_trace_name(std::string_view name) {
  return name.ends_with(".jsonl") || name.ends_with(".jsonl.gz");
}

}  // namespace

Result<std::vector<std::string>> trace_paths(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> paths;
  fs::recursive_directory_iterator at(path, error);
  while (!error && at != fs::recursive_directory_iterator()) {
    if (is_trace_name(at->path().native()) && !at->is_directory()) {
      paths.push_back(at->path().string());
    }
    at.increment(error);
  }
  if (error) {
    return fail(ErrorCode::unreadable,
                fmt::format("{}: this folder cannot be read: {}", path, error.message()));
  }
  if (paths.empty()) {
    return fail(ErrorCode::unreadable,
                fmt::format("{}: this folder holds no *.jsonl or *.jsonl.gz", path));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace zeroproof

#include "props/foreign/dump_paths.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "props/foreign/dump_format.h"

namespace zeroproof {
namespace {

namespace fs = std::filesystem;

bool may_be_dump(std::string name) {
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (name.ends_with(".perfetto.json")) return false;
  return name.ends_with(".json") || name.ends_with(".pickle") || name.ends_with(".pkl") ||
         name.find('.') == std::string::npos;
}

}  // namespace

std::vector<std::string> dump_paths(const std::string& word) {
  std::error_code error;
  std::vector<std::string> paths;
  if (!fs::is_directory(word, error)) {
    if (dump_format_of_file(word)) paths.push_back(word);
    return paths;
  }
  fs::recursive_directory_iterator at(word, error);
  while (!error && at != fs::recursive_directory_iterator()) {
    std::error_code ignored;
    const bool is_candidate =
        at->is_regular_file(ignored) && may_be_dump(at->path().filename().string());
    if (is_candidate && dump_format_of_file(at->path().string()))
      paths.push_back(at->path().string());
    at.increment(error);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace zeroproof

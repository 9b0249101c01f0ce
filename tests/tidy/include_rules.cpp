#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>

#include "tests/tidy/rules.h"

namespace zeroproof::tidy {
namespace {

// The first row whose folder a file lies in holds for it.
struct Layer {
  std::string_view folder;
  std::vector<std::string_view> may_include;
};

const std::vector<Layer>& layers() {
  static const std::vector<Layer> kLayers = {
      {"model/", {"model/"}},
      {"engine/runtime/cuda/", {"model/", "engine/runtime/"}},
      {"engine/", {"model/", "engine/"}},
      {"sim/", {"model/", "engine/", "sim/"}},
      {"props/", {"model/", "engine/", "sim/", "props/"}},
      {"tests/", {"model/", "engine/", "sim/", "props/", "tests/"}},
      {"bench/", {"model/", "engine/", "sim/", "props/", "bench/"}},
  };
  return kLayers;
}

// Where a library may be included, by prefix of the header's name. Nothing but tl::expected
// comes into a header of the product.
struct Library {
  std::string_view prefix;
  std::vector<std::string_view> folders;
};

const std::vector<Library>& libraries() {
  static const std::vector<Library> kLibraries = {
      {"tl/", {"model/", "engine/", "sim/", "props/"}},
      {"fmt/", {"model/", "engine/", "sim/", "props/"}},
      {"nlohmann/", {"sim/", "props/"}},
      {"CLI/", {"props/cli/"}},
      {"tinyxml2.h", {"props/"}},
      {"simdjson.h", {"sim/"}},
      {"zlib.h", {"sim/"}},
      {"isa-l", {"sim/"}},
      {"xxhash.h", {"sim/"}},
      {"gtest/", {}},
      {"gmock/", {}},
      {"rapidcheck", {}},
      {"benchmark/", {}},
  };
  return kLibraries;
}

bool starts_with_any(std::string_view text, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](auto prefix) { return text.starts_with(prefix); });
}

// Empty when the include is right; else what is wrong.
std::string judge_own(const SourceFile& file, std::string_view name,
                      const std::set<std::string>& all) {
  if (!all.contains(std::string(name))) {
    return "\"" + std::string(name) + "\" is no path from the root";
  }
  for (const Layer& layer : layers()) {
    if (!file.is_under(layer.folder)) continue;
    if (starts_with_any(name, layer.may_include)) return {};
    return std::string(layer.folder) + " must not include \"" + std::string(name) + "\"";
  }
  return {};
}

std::string judge_third_party(const SourceFile& file, std::string_view name) {
  if (file.is_under("tests/") || file.is_under("bench/")) return {};
  const auto library = std::ranges::find_if(
      libraries(), [&](const Library& row) { return name.starts_with(row.prefix); });
  if (library != libraries().end()) {
    if (!starts_with_any(file.path, library->folders)) {
      return "<" + std::string(name) + "> does not belong in this folder";
    }
    if (file.is_header() && library->prefix != "tl/") {
      return "<" + std::string(name) + "> belongs in a .cpp file";
    }
    return {};
  }
  if (!name.ends_with(".h") && name.find('/') == name.npos) return {};  // the standard library
  if (file.is_header() || file.is_under("model/") ||
      (file.is_under("engine/") && !file.is_under("engine/runtime/"))) {
    return "<" + std::string(name) + "> is neither standard C++ nor in the table of libraries";
  }
  return {};
}

// Depth first over the headers; a header met again on the way down closes a cycle.
class CycleFinder {
 public:
  explicit CycleFinder(const Tree& tree) {
    for (const SourceFile& file : tree) files_[file.path] = &file;
  }

  Findings run() {
    for (const auto& [path, file] : files_) visit(*file);
    return std::move(findings_);
  }

 private:
  void visit(const SourceFile& file) {
    if (!seen_.insert(file.path).second) return;
    open_.insert(file.path);
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string include = include_of(file, i);
      if (!include.starts_with('"')) continue;
      const auto found = files_.find(include.substr(1, include.size() - 2));
      if (found == files_.end()) continue;
      if (open_.contains(found->first)) {
        findings_.push_back({file.path, i + 1, "include_cycle", "leads back to this file"});
      } else {
        visit(*found->second);
      }
    }
    open_.erase(file.path);
  }

  std::map<std::string, const SourceFile*> files_;
  std::set<std::string> seen_;
  std::set<std::string> open_;
  Findings findings_;
};

}  // namespace

Findings check_includes(const Tree& tree) {
  std::set<std::string> paths;
  for (const SourceFile& file : tree) paths.insert(file.path);
  Findings findings = CycleFinder(tree).run();
  for (const SourceFile& file : tree) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string include = include_of(file, i);
      if (include.size() < 2) continue;
      const std::string name = include.substr(1, include.size() - 2);
      const bool is_own = include.front() == '"';
      std::string wrong = is_own ? judge_own(file, name, paths) : judge_third_party(file, name);
      if (wrong.empty()) continue;
      findings.push_back({file.path, i + 1, is_own ? "layer" : "third_party", std::move(wrong)});
    }
  }
  return findings;
}

}  // namespace zeroproof::tidy

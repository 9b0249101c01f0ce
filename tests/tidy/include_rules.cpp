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
      {"examples/", {"model/", "engine/", "props/"}},
      {"bench/", {"model/", "engine/", "sim/", "props/", "bench/"}},
  };
  return kLayers;
}

// Where a library may be included in the product, by prefix of the header's name, and the Debian
// package it comes from. Only tl::expected comes into a header of the product; tests and
// benchmarks may include every library of the table.
struct Library {
  std::string_view prefix;
  std::string_view package;
  std::vector<std::string_view> folders;
};

const std::vector<Library>& libraries() {
  static const std::vector<Library> kLibraries = {
      {"tl/", "libexpected-dev", {"model/", "engine/", "sim/", "props/"}},
      {"fmt/", "libfmt-dev", {"model/", "engine/", "sim/", "props/"}},
      {"nlohmann/", "nlohmann-json3-dev", {"engine/", "sim/", "props/"}},
      {"pcg_random.hpp", "libpcg-cpp-dev", {"sim/"}},
      {"boost/context/", "libboost-context1.81-dev", {"sim/world/"}},
      {"CLI/", "libcli11-dev", {"props/cli/"}},
      {"tinyxml2.h", "libtinyxml2-dev", {"props/"}},
      {"simdjson.h", "libsimdjson-dev", {"sim/"}},
      {"zlib.h", "zlib1g-dev", {"sim/"}},
      // checksums of a checkpoint, fingerprints of a state
      {"xxhash.h", "libxxhash-dev", {"engine/checkpoint/", "sim/"}},
      // of the compiler
      {"sanitizer/", "", {"sim/world/"}},
      // of the CUDA toolkit, which is found or not: no package
      {"cuda", "", {"engine/runtime/cuda/"}},
      {"nccl.h", "", {"engine/runtime/cuda/"}},
      {"cublas", "", {"engine/runtime/cuda/"}},
      {"cudnn", "", {"engine/runtime/cuda/"}},
      {"cupti", "", {"bench/cuda/"}},
      {"gtest/", "libgtest-dev", {}},
      {"gmock/", "libgmock-dev", {}},
      {"rapidcheck", "librapidcheck-dev", {}},
      {"benchmark/", "libbenchmark-dev", {}},
  };
  return kLibraries;
}

const Library* library_of(std::string_view name) {
  for (const Library& library : libraries()) {
    if (name.starts_with(library.prefix)) return &library;
  }
  return nullptr;
}

// With the C++ ABI, which names classes and comes with the compiler.
bool is_standard(std::string_view name) {
  return name.find_first_of("./") == name.npos || name == "cxxabi.h";
}

// Of the system: POSIX, and the C++ ABI for names of classes.
bool is_posix(std::string_view name) {
  constexpr std::array<std::string_view, 12> kPosix = {
      "sys/",     "unistd.h", "fcntl.h",  "spawn.h", "poll.h",  "pthread.h",
      "signal.h", "sched.h",  "cxxabi.h", "dlfcn.h", "netdb.h", "netinet/"};
  return std::ranges::any_of(kPosix, [&](auto prefix) { return name.starts_with(prefix); });
}

bool is_below_any(std::string_view text, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](auto prefix) { return text.starts_with(prefix); });
}

// Empty when the include is right; else what is wrong.
std::string judge_own(const SourceFile& file, std::string_view name,
                      const std::set<std::string>& all) {
  if (!all.contains(path_of_include(name))) {
    return "\"" + std::string(name) + "\" is no path from the root";
  }
  // The product has no fault in it.
  constexpr std::string_view kMutation = "props/mutation/";
  const bool is_product = !file.is_under(kMutation) && !file.is_under("tests/");
  if (is_product && name.starts_with(kMutation))
    return "the product must not include \"" + std::string(name) + "\"";
  for (const Layer& layer : layers()) {
    if (!file.is_under(layer.folder)) continue;
    if (is_below_any(SourceFile::place_of(name), layer.may_include)) return {};
    return std::string(layer.folder) + " must not include \"" + std::string(name) + "\"";
  }
  return {};
}

std::string judge_third_party(const SourceFile& file, std::string_view name) {
  if (is_standard(name)) return {};
  const std::string quoted = "<" + std::string(name) + ">";
  const Library* library = library_of(name);
  if (library == nullptr && !is_posix(name)) return quoted + " is not in the table of libraries";
  if (file.is_under("tests/") || file.is_under("bench/")) return {};
  // The headers of runtime/cuda are its own but for cuda_world.h, whose folder no other includes.
  const bool is_cuda = file.is_under("engine/runtime/cuda/") && library && library->package.empty();
  if (file.is_header() && !is_cuda && (library == nullptr || library->prefix != "tl/")) {
    return quoted + " belongs in a .cpp file";
  }
  const bool is_core = file.is_under("model/") || file.is_under("engine/");
  // engine/files is the one place of the engine that sees the file system.
  const bool is_system = file.is_under("engine/runtime/") || file.is_under("engine/files/");
  const bool is_at_home =
      library == nullptr ? !is_core || is_system : is_below_any(file.place(), library->folders);
  return is_at_home ? std::string() : quoted + " does not belong in this folder";
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
      const auto found = files_.find(path_of_include(include.substr(1, include.size() - 2)));
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

std::vector<std::string> packages_used(const Tree& tree) {
  std::set<std::string> packages;
  for (const SourceFile& file : tree) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string include = include_of(file, i);
      if (!include.starts_with('<')) continue;
      const Library* library = library_of(std::string_view(include).substr(1));
      if (library != nullptr && !library->package.empty())
        packages.insert(std::string(library->package));
    }
  }
  return {packages.begin(), packages.end()};
}

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

#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof::tidy {

// One file of the tree, as the rules see it.
struct SourceFile {
  std::string path;                // from the root, with '/'
  std::vector<std::string> lines;  // as written, without line ends
  std::vector<std::string> code;   // the same with comments and literals blanked, columns kept
  bool ends_with_newline = true;

  bool is_header() const { return path.ends_with(".h"); }
  // Where it belongs: "zeroproof/engine/engine.h" of include/zeroproof/engine/engine.h.
  std::string_view place() const { return place_of(path); }
  bool is_under(std::string_view folder) const { return place().starts_with(folder); }

  static std::string_view place_of(std::string_view path);
};

// What a rule says about a place; `line` counts from 1.
struct Finding {
  std::string path;
  std::size_t line = 0;
  std::string rule;    // the rule's id, as in allowances.txt
  std::string detail;  // what is wrong, in words
};

SourceFile parse_source(std::string path, std::string_view text);

// Every .h and .cpp of the layers, include, tests, examples and bench, sorted by path.
std::vector<SourceFile> load_tree(const std::filesystem::path& root);

// Whether `token` stands in `line` with no identifier character beside it; npos when not.
std::size_t find_token(std::string_view line, std::string_view token);

// The path from the root of a header that is included by this name.
std::string path_of_include(std::string_view name);

// What an #include names, quotes or angle brackets kept; empty when the line is none.
std::string include_of(const SourceFile& file, std::size_t index);

}  // namespace zeroproof::tidy

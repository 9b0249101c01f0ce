#include <map>
#include <sstream>

#include "tests/tidy/rules.h"

namespace zeroproof::tidy {
namespace {

// The type that a line at the outermost level defines; empty: none.
std::string type_of(const std::string& line) {
  if (line.find(';') != line.npos && line.find('{') == line.npos) return {};  // declared
  std::istringstream words(line);
  std::string kind;
  std::string name;
  words >> kind >> name;
  if (!line.starts_with(kind)) return {};
  if (kind == "enum" && name == "class") words >> name;
  return kind == "struct" || kind == "class" || kind == "enum" ? name : std::string();
}

}  // namespace

// The linker keeps either one of two destructors of one name, and no compiler sees both.
Findings check_names(const Tree& tree) {
  Findings findings;
  std::map<std::string, std::string> known;  // where each type is
  for (const SourceFile& file : tree) {
    if (!file.is_header() || file.is_under("tests/") || file.is_under("bench/")) continue;
    std::string space;
    for (std::size_t i = 0; i < file.code.size(); ++i) {
      if (file.code[i].starts_with("namespace ")) space = file.code[i];
      const std::string type = type_of(file.code[i]);
      if (type.empty()) continue;
      const auto [at, is_new] = known.emplace(space + type, file.path);
      if (!is_new && at->second != file.path)
        findings.push_back(
            {file.path, i + 1, "two_types", type + " is in " + at->second + ", too"});
    }
  }
  return findings;
}

}  // namespace zeroproof::tidy

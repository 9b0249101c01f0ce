#include <algorithm>

#include "tests/tidy/rules.h"

namespace zeroproof::tidy {
namespace {

// The words are assembled, so that this file passes its own rule.
const std::string kUnfinished[] = {std::string("TO") + "DO", std::string("FIX") + "ME",
                                   std::string("XX") + "X"};

void check_pragma(const SourceFile& file, Findings& findings) {
  if (!file.is_header()) return;
  const auto is_code = [](const std::string& line) { return !line.empty() && line[0] != ' '; };
  const auto first = std::ranges::find_if(file.code, is_code);
  if (first != file.code.end() && *first == "#pragma once") return;
  findings.push_back({file.path, 1, "pragma_once", "a header begins with #pragma once"});
}

void check_text_line(const SourceFile& file, std::size_t index, Findings& findings) {
  const std::string& line = file.lines[index];
  const auto report = [&](const char* rule, std::string detail) {
    findings.push_back({file.path, index + 1, rule, std::move(detail)});
  };
  if (line.find('\t') != line.npos) report("blanks", "tab");
  if (line.find('\r') != line.npos) report("blanks", "carriage return");
  if (line.ends_with(' ')) report("blanks", "blank at the end of the line");
  for (const std::string& word : kUnfinished) {
    if (find_token(line, word) != line.npos) report("unfinished", word + " in a finished tree");
  }
  if (find_token(file.code[index], "using namespace") != line.npos) {
    report("using_namespace", "name what is used");
  }
}

}  // namespace

Findings check_text(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    check_pragma(file, findings);
    for (std::size_t i = 0; i < file.lines.size(); ++i) check_text_line(file, i, findings);
    if (!file.ends_with_newline) {
      findings.push_back({file.path, file.lines.size(), "blanks", "no newline at the end"});
    }
  }
  return findings;
}

}  // namespace zeroproof::tidy

#include "props/report/verify_parts.h"

#include <algorithm>
#include <string_view>

namespace zeroproof {
namespace {

std::string trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return std::string(text.substr(begin, text.find_last_not_of(' ') + 1 - begin));
}

// A verdict in the first columns, then the name.
VerifyPart part_of(std::string_view line) {
  constexpr std::size_t kVerdict = 11;
  const std::string_view rest = line.size() > kVerdict ? line.substr(kVerdict) : "";
  const std::size_t name = std::min(rest.find(' '), rest.size());
  return {.verdict = trimmed(line.substr(0, kVerdict)),
          .name = std::string(rest.substr(0, name)),
          .text = trimmed(rest.substr(name)),
          .failures = {}};
}

}  // namespace

std::vector<VerifyPart> verify_parts(const VerifyReport& report) {
  constexpr std::string_view kIndent = "    ";  // of a line about the part above
  const std::string text = verify_parts_text(report);
  std::vector<VerifyPart> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.starts_with(kIndent) && !parts.empty())
      parts.back().failures.emplace_back(line.substr(kIndent.size()));
    else
      parts.push_back(part_of(line));
    at = end + 1;
  }
  return parts;
}

}  // namespace zeroproof

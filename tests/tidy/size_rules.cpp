#include "tests/tidy/function_scan.h"
#include "tests/tidy/rules.h"

namespace zeroproof::tidy {
namespace {

constexpr std::size_t kHeaderLinesMax = 200;
constexpr std::size_t kSourceLinesMax = 400;
constexpr std::size_t kTestLinesMax = 600;
constexpr std::size_t kFunctionLinesMax = 70;
constexpr std::size_t kColumnsMax = 100;
constexpr std::size_t kParametersMax = 6;

std::size_t lines_max(const SourceFile& file) {
  if (file.is_header()) return kHeaderLinesMax;
  return file.is_under("tests/") ? kTestLinesMax : kSourceLinesMax;
}

// Code points, so that a non-ASCII letter is one column.
std::size_t columns(const std::string& line) {
  std::size_t count = 0;
  for (const char c : line) count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return count;
}

std::string at_most(std::size_t count, const char* unit, std::size_t max) {
  return std::to_string(count) + " " + unit + ", at most " + std::to_string(max);
}

}  // namespace

Findings check_sizes(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    const std::size_t count = file.lines.size();
    if (count > lines_max(file)) {
      findings.push_back({file.path, count, "file_size", at_most(count, "lines", lines_max(file))});
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t width = columns(file.lines[i]);
      if (width <= kColumnsMax) continue;
      findings.push_back({file.path, i + 1, "line_length", at_most(width, "columns", kColumnsMax)});
    }
    for (const FunctionSpan& function : scan_functions(file)) {
      const auto report = [&](const char* rule, std::size_t size, const char* unit,
                              std::size_t max) {
        if (size <= max) return;
        findings.push_back({file.path, function.first_line, rule, at_most(size, unit, max)});
      };
      report("function_size", function.line_count, "lines", kFunctionLinesMax);
      report("parameters", function.parameter_count, "parameters", kParametersMax);
    }
  }
  return findings;
}

}  // namespace zeroproof::tidy

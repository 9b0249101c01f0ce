#include "props/program/json_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "model/check.h"

namespace zeroproof::program {
namespace {

constexpr std::size_t kJsonWidth = 100;

// `taken` columns of the first line belong to indentation and key.
std::string lines_of(const nlohmann::ordered_json& value, std::size_t taken, std::size_t indent) {
  std::string line = value.dump();
  if (taken + line.size() < kJsonWidth || !value.is_structured() || value.empty()) return line;
  std::vector<std::string> lines;
  for (const auto& [key, item] : value.items()) {
    std::string begin(indent + 1, ' ');
    if (value.is_object()) begin += fmt::format("\"{}\": ", key);
    lines.push_back(begin + lines_of(item, begin.size(), indent + 1));
  }
  const std::string_view brackets = value.is_object() ? "{}" : "[]";
  return fmt::format("{}\n{}\n{:{}}{}", brackets[0], fmt::join(lines, ",\n"), "", indent,
                     brackets[1]);
}

}  // namespace

std::string json_lines(const std::string& json) {
  const auto document = nlohmann::ordered_json::parse(json, nullptr, false);
  ZP_CHECK(!document.is_discarded(), "no JSON document: " + json);
  return lines_of(document, 0, 0) + "\n";
}

}  // namespace zeroproof::program

#include "props/export/name_scope.h"

#include <fmt/format.h>

#include <cctype>

namespace zeroproof {
namespace {

// Words of Python, and names that the script uses itself.
constexpr std::string_view kReserved[] = {
    "False",  "None",   "True",  "and",      "as",     "assert", "async",   "await",   "break",
    "class",  "def",    "del",   "elif",     "else",   "except", "for",     "from",    "global",
    "if",     "import", "in",    "is",       "lambda", "not",    "or",      "pass",    "raise",
    "return", "try",    "while", "with",     "yield",  "x",      "run",     "self",    "torch",
    "Layer",  "Tile",   "Boom",  "continue", "sum",    "loss",   "finally", "nonlocal"};

std::string identifier(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(byte)) != 0;
    out += is_plain ? byte : '_';
  }
  const bool has_bad_start = out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0;
  return has_bad_start ? "n" + out : out;
}

}  // namespace

NameScope::NameScope() {
  for (const std::string_view word : kReserved) taken_.emplace(word);
}

const std::string& NameScope::name(const std::string& key, std::string_view wanted) {
  const auto known = names_.find(key);
  if (known != names_.end()) return known->second;
  const std::string base = identifier(wanted);
  std::string made = base;
  for (int number = 2; taken_.contains(made); ++number) made = fmt::format("{}_{}", base, number);
  taken_.insert(made);
  return names_.emplace(key, std::move(made)).first->second;
}

std::string python_string(std::string_view text) {
  std::string out = "\"";
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if (byte == '"' || byte == '\\')
      out += fmt::format("\\{}", byte);
    else if (code < 0x20 || code == 0x7f)
      out += fmt::format("\\x{:02x}", code);
    else
      out += byte;
  }
  return out + "\"";
}

}  // namespace zeroproof

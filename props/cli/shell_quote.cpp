#include "props/cli/shell_quote.h"

#include <algorithm>
#include <cctype>

namespace zeroproof {

std::string shell_quote(std::string_view word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_./+-:,=%@").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted.push_back(c);
    }
  }
  return quoted + "'";
}

std::string setting_words(const std::vector<std::string>& settings) {
  std::string words;
  for (const std::string& setting : settings) words += " --set " + shell_quote(setting);
  return words;
}

}  // namespace zeroproof

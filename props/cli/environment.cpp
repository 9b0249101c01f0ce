#include "props/cli/environment.h"

#include <algorithm>
#include <string_view>

extern char** environ;

namespace zeroproof {

Environment environment() {
  Environment variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = std::min(text.find('='), text.size());
    variables.emplace(text.substr(0, equals), text.substr(std::min(equals + 1, text.size())));
  }
  return variables;
}

}  // namespace zeroproof

#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace zeroproof {

// Turns the names of a scenario into Python identifiers, one a key: "a.p2" becomes a_p2, and what
// another key has taken already, or what Python or the script means something else by, gets a
// number. Deterministic in the order of asking. Not thread-safe.
class NameScope {
 public:
  NameScope();

  // The identifier for `key`; `wanted` is what it is made of.
  const std::string& name(const std::string& key, std::string_view wanted);

 private:
  std::set<std::string, std::less<>> taken_;
  std::map<std::string, std::string> names_;
};

// `text` as a Python string literal.
std::string python_string(std::string_view text);

}  // namespace zeroproof

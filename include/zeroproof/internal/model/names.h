#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "zeroproof/model/ids.h"

namespace zeroproof {

// Interns strings: equal strings get equal ids, numbered in order of first use.
// Not thread-safe. Views returned by `text` live as long as the table.
class NameTable {
 public:
  NameId intern(std::string_view text);

  // The id of `text`, or none when it was never interned.
  NameId find(std::string_view text) const;

  // The empty view for the none id.
  std::string_view text(NameId id) const;

  std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // deque: a growing table must not move the strings
  std::map<std::string_view, NameId> ids_;
};

}  // namespace zeroproof

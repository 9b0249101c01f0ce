#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/record.h"

namespace zeroproof {

// The event kinds that a file can no longer be trusted to hold, as its notes say.
class LostKinds {
 public:
  explicit LostKinds(const std::vector<NoteRecord>& notes) : notes_(notes) {}

  // Why one of these kinds is lost; empty when the file has all of them.
  std::string reason(std::initializer_list<std::string_view> kinds) const;
  std::string reason(const std::vector<std::string_view>& kinds) const;

 private:
  const std::vector<NoteRecord>& notes_;
};

// What the trace profile needs to judge a property, by its number: "P42".
std::vector<std::string_view> kinds_needed(std::string_view property);

}  // namespace zeroproof

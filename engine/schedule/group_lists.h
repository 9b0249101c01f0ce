#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/engine/schedule/scheduler_config.h"

namespace zeroproof {

// Gives each parameter group its number, and remembers the first list that does not fit.
class GroupLists {
 public:
  explicit GroupLists(std::size_t groups) : groups_(groups) {}

  std::vector<double> of(std::string_view name, const GroupValues& values);
  const std::string& problem() const { return problem_; }  // empty: every list fits

 private:
  std::size_t groups_;
  std::string problem_;
};

}  // namespace zeroproof

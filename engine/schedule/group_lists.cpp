#include "engine/schedule/group_lists.h"

#include <fmt/format.h>

namespace zeroproof {

std::vector<double> GroupLists::of(std::string_view name, const GroupValues& values) {
  if (const double* const one = std::get_if<double>(&values))
    return std::vector<double>(groups_, *one);
  std::vector<double> list = std::get<std::vector<double>>(values);
  if (list.size() == groups_) return list;
  if (problem_.empty())
    problem_ = fmt::format(
        "/scheduler/params/{} has {} values, and the engine {} parameter groups; give one for "
        "each, or one number for all",
        name, list.size(), groups_);
  list.resize(groups_);
  return list;
}

}  // namespace zeroproof

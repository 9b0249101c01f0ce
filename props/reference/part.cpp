#include "props/reference/part.h"

#include <algorithm>

namespace zeroproof::reference {

template <class Rows>
std::optional<std::size_t> NameIndex::find(NameId name, const Rows& rows, Known& known) {
  if (name.is_none()) return std::nullopt;
  const auto [at, is_new] = known.try_emplace(name);
  if (!is_new) return at->second;
  const auto is_it = [&](const auto& row) { return row.name == names_.text(name); };
  const auto row = std::ranges::find_if(rows, is_it);
  if (row != rows.end()) at->second = static_cast<std::size_t>(row - rows.begin());
  return at->second;
}

std::optional<std::size_t> NameIndex::parameter(NameId name) {
  return find(name, world_.parameters, parameters_);
}

std::optional<std::size_t> NameIndex::module(NameId name) {
  return find(name, world_.modules, modules_);
}

}  // namespace zeroproof::reference

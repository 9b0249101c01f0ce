#include "zeroproof/internal/model/names.h"

#include "model/check.h"

namespace zeroproof {

NameId NameTable::intern(std::string_view text) {
  if (const auto known = ids_.find(text); known != ids_.end()) return known->second;
  const NameId id{static_cast<std::int32_t>(texts_.size())};
  texts_.emplace_back(text);
  ids_.emplace(texts_.back(), id);
  return id;
}

NameId NameTable::find(std::string_view text) const {
  const auto known = ids_.find(text);
  return known == ids_.end() ? NameId::none() : known->second;
}

std::string_view NameTable::text(NameId id) const {
  if (id.is_none()) return {};
  ZP_CHECK(static_cast<std::size_t>(id.value) < texts_.size(), "a name id of another table");
  return texts_[static_cast<std::size_t>(id.value)];
}

}  // namespace zeroproof

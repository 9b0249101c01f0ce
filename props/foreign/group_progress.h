#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "props/foreign/collective_group.h"

namespace zeroproof {

// What a rank did about one collective of its group.
enum class Fate : std::uint8_t {
  issued,
  not_issued,
  unknown,  // the dump cannot say: it is cut, or holds active operations only
};

// How far the ranks of a group came.
class GroupState {
 public:
  explicit GroupState(const CollectiveGroup& group);

  // `view`: index into the group's views.
  Fate fate(std::size_t view, std::int64_t number) const;

  // The last number that the rank completed; nullopt: the dump does not say.
  std::optional<std::int64_t> completed(std::size_t view) const;

  // Whether the dumps hold active operations only: the fate of an absent operation is unknown.
  bool holds_active_only() const { return holds_active_only_; }

  // Ranks that have issued a collective which others completed, and have not completed it.
  std::vector<std::size_t> trailing() const;

 private:
  const GroupProgress* progress(std::size_t view) const;

  const CollectiveGroup& group_;
  bool holds_active_only_ = false;
};

}  // namespace zeroproof

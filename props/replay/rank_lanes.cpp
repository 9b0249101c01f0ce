#include "props/replay/rank_lanes.h"

#include <algorithm>

namespace zeroproof {
namespace {

constexpr std::size_t kOpenMax = 64;

}  // namespace

MemberTable make_member_table() {
  return MemberTable([](const GroupMembers& a, const GroupMembers& b) { return *a < *b; });
}

void OpenNumbers::add(const Item& item) {
  if (items_.size() < kOpenMax) items_.push_back(item);
}

void OpenNumbers::complete(std::int64_t number) {
  completed_ = std::max(completed_, number);
  std::erase_if(items_, [&](const Item& item) { return item.number <= completed_; });
}

bool OpenNumbers::contains(std::int64_t number) const {
  return std::any_of(items_.begin(), items_.end(),
                     [&](const Item& item) { return item.number == number; });
}

}  // namespace zeroproof

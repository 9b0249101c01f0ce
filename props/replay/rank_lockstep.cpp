#include "props/replay/rank_lockstep.h"

#include <algorithm>
#include <tuple>

#include "props/replay/collective_rules.h"
#include "sim/trace/point_to_point.h"

namespace zeroproof {
namespace {

using Items = std::deque<LaneItem>;

constexpr std::uint64_t kItemsBetweenStopRequests = 1024;

// One of two files; what it has read ahead.
class Side {
 public:
  Side(RankCursor cursor, std::int64_t first_number) : cursor_(std::move(cursor)) {
    do {
      front_ = cursor_.next();
    } while (front_ && first_number >= 0 && front_->number < first_number);
  }

  const std::optional<LaneItem>& front() const { return front_; }
  void advance() {
    before_ = std::move(front_);
    front_ = cursor_.next();
  }
  std::optional<LaneItem> before() const { return before_; }
  DiagnosisMoment last() const { return cursor_.last(); }

  Items take_ahead() {
    Items items;
    while (front_ && items.size() < LockstepDifference::kLookAhead) {
      items.push_back(std::move(*front_));
      front_ = cursor_.next();
    }
    return items;
  }

 private:
  RankCursor cursor_;
  std::optional<LaneItem> front_;
  std::optional<LaneItem> before_;
};

// How many of `mine` from `skipped` on agree with `other` from `other_skipped` on.
std::size_t agreement(const Items& mine, std::size_t skipped, const Items& other,
                      std::size_t other_skipped, bool by_parameters) {
  std::size_t agreed = 0;
  while (skipped + agreed < mine.size() && other_skipped + agreed < other.size() &&
         is_same_item(mine[skipped + agreed], other[other_skipped + agreed], by_parameters))
    ++agreed;
  return agreed;
}

// Whether the first `length` items of both are the same, in any order.
bool is_permuted(const Items& mine, const Items& other, std::size_t length, bool by_parameters) {
  std::vector<bool> is_used(length);
  for (std::size_t at = 0; at < length; ++at) {
    std::size_t match = 0;
    while (match < length &&
           (is_used[match] || !is_same_item(mine[at], other[match], by_parameters)))
      ++match;
    if (match == length) return false;
    is_used[match] = true;
  }
  return true;
}

struct Scored {
  LockstepExplanation explanation;
  bool is_whole = false;  // no item remains on either side
  std::size_t covered = 0;

  bool is_better_than(const Scored& other) const {
    return std::tuple(is_whole, covered) > std::tuple(other.is_whole, other.covered);
  }
};

// Both sides are used up, as far as they were read ahead.
bool is_used_up(const Items& mine, std::size_t mine_used, const Items& other,
                std::size_t other_used) {
  const auto is_end = [](const Items& items, std::size_t used) { return used == items.size(); };
  const bool is_cut = mine.size() == LockstepDifference::kLookAhead ||
                      other.size() == LockstepDifference::kLookAhead;
  return is_cut ? is_end(mine, mine_used) || is_end(other, other_used)
                : is_end(mine, mine_used) && is_end(other, other_used);
}

Scored left_out(const LockstepDifference& at, bool is_mine, bool by_parameters) {
  const Items& longer = is_mine ? at.other : at.mine;
  const Items& shorter = is_mine ? at.mine : at.other;
  const std::size_t agreed = agreement(longer, 1, shorter, 0, by_parameters);
  const auto kind = is_mine ? LockstepExplanation::Kind::mine_left_out
                            : LockstepExplanation::Kind::other_left_out;
  return {{kind, 0}, agreed > 0 && is_used_up(longer, agreed + 1, shorter, agreed), agreed};
}

Scored swapped(const LockstepDifference& at, bool by_parameters) {
  const std::size_t length_max = std::min(at.mine.size(), at.other.size());
  for (std::size_t length = 2; length <= length_max; ++length) {
    if (!is_permuted(at.mine, at.other, length, by_parameters)) continue;
    const std::size_t agreed = agreement(at.mine, length, at.other, length, by_parameters);
    const std::size_t end = length + agreed;
    return {
        {LockstepExplanation::Kind::swapped, length}, is_used_up(at.mine, end, at.other, end), end};
  }
  return {};
}

}  // namespace

bool is_same_item(const LaneItem& a, const LaneItem& b, bool compares_parameters) {
  if (is_point_to_point(a.op) && is_point_to_point(b.op)) return a.bytes == b.bytes;
  if (a.op != b.op) return false;
  if (a.op == kOptimizerStep) return a.collectives == b.collectives;
  const CollectiveRule& rule = collective_rule(a.op);
  if (rule.has_same_size && a.bytes != b.bytes) return false;
  if (rule.has_root && a.root >= 0 && b.root >= 0 && a.root != b.root) return false;
  const bool has_parameters = !a.parameters.empty() && !b.parameters.empty();
  return !compares_parameters || !has_parameters || a.parameters == b.parameters;
}

std::optional<LockstepDifference> first_difference(const LockstepSide& mine,
                                                   const LockstepSide& other,
                                                   const LockstepOptions& options) {
  auto mine_cursor = RankCursor::open(mine.path, mine.lane);
  auto other_cursor = RankCursor::open(other.path, other.lane);
  if (!mine_cursor || !other_cursor) return std::nullopt;
  Side a(std::move(*mine_cursor), options.first_number);
  Side b(std::move(*other_cursor), options.first_number);
  LockstepDifference found;
  while (a.front() && b.front() &&
         is_same_item(*a.front(), *b.front(), options.compares_parameters)) {
    const bool asks = ++found.agreed % kItemsBetweenStopRequests == 0;
    if (asks && options.should_stop && options.should_stop()) return std::nullopt;
    a.advance();
    b.advance();
  }
  if (!a.front() && !b.front()) return std::nullopt;
  found.mine_before = a.before();
  found.other_before = b.before();
  found.mine_last = a.last();
  found.other_last = b.last();
  found.mine = a.take_ahead();
  found.other = b.take_ahead();
  return found;
}

LockstepExplanation explain(const LockstepDifference& difference, bool compares_parameters) {
  using Kind = LockstepExplanation::Kind;
  if (difference.mine.empty()) return {Kind::mine_ended, 0};
  if (difference.other.empty()) return {Kind::other_ended, 0};
  Scored best{{Kind::unlike, 0}, false, 0};
  for (const Scored& one :
       {left_out(difference, true, compares_parameters),
        left_out(difference, false, compares_parameters), swapped(difference, compares_parameters)})
    if (one.is_better_than(best)) best = one;
  return best.explanation;
}

}  // namespace zeroproof

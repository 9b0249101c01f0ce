#include "props/replay/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "props/replay/lane_divergence.h"
#include "props/replay/message_divergence.h"
#include "props/replay/rank_set.h"
#include "props/replay/rank_waits.h"
#include "props/replay/replica_comparison.h"

namespace zeroproof {
namespace {

constexpr std::size_t kGroupsRead = 12;  // groups of a run whose difference is looked for in files
constexpr std::size_t kClassesRead = 8;  // of each group
constexpr std::size_t kWaitMoments = 3;
constexpr std::size_t kExceptionMoments = 3;

class RunComparer {
 public:
  RunComparer(const std::vector<RunMember>& members, const std::function<bool()>& should_stop)
      : members_(members), should_stop_(should_stop) {}

  RunComparison run() {
    for (const RunMember& member : members_) {
      out_.ranks.push_back(member.rank);
      out_.files.emplace_back(member.path);
    }
    const LaneGroups lanes = lane_groups(members_);
    out_.skipped = lanes.skipped;
    const RankWaits waits(members_, lanes.groups);
    take(compare_declared_parameters(members_));
    compare_groups(lanes.groups, waits);
    MessageComparison messages = compare_messages(members_, waits, should_stop_);
    append(out_.skipped, messages.skipped);
    const bool has_cause = has_divergence_;
    for (Diagnosis& one : messages.found) {
      if (has_cause && one.kind == "message.missing") continue;  // the ranks had parted before
      add_waits(one, waits);
      add_exceptions(one);
      has_divergence_ = true;
      out_.found.push_back(std::move(one));
    }
    if (!has_divergence_) take(compare_steps_and_hooks(members_, should_stop_));
    tell_checked(lanes.groups, messages.pairs);
    return std::move(out_);
  }

 private:
  template <class T>
  static void append(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  void take(const ReplicaComparison& part) {
    append(out_.found, part.found);
    append(out_.skipped, part.skipped);
    append(replicas_checked_, part.checked);
  }

  void compare_groups(const std::vector<LaneGroup>& groups, const RankWaits& waits) {
    std::vector<LaneDivergence> all;
    for (const LaneGroup* group : suspects(groups, waits)) {
      if (should_stop_ && should_stop_()) return;
      if (auto found = earliest_divergence(*group)) all.push_back(std::move(*found));
    }
    if (all.empty()) return;
    const auto cause = std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return precedence(a, waits) < precedence(b, waits);
    });
    out_.ends_apart = cause->is_end();
    Diagnosis found = diagnosis_of_divergence(*cause);
    if (all.size() > 1)
      found.what += fmt::format("; {} other group{} part{} after it", all.size() - 1,
                                all.size() > 2 ? "s" : "", all.size() > 2 ? "" : "s");
    add_waits(found, waits);
    add_exceptions(found);
    has_divergence_ = true;
    out_.found.push_back(std::move(found));
  }

  // Groups that do not agree, those first that are likeliest to hold the cause.
  std::vector<const LaneGroup*> suspects(const std::vector<LaneGroup>& groups,
                                         const RankWaits& waits) const {
    std::vector<std::pair<std::tuple<int, std::uint64_t>, const LaneGroup*>> ranked;
    for (const LaneGroup& group : groups)
      if (!group.agrees()) ranked.emplace_back(suspicion(group, waits), &group);
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<const LaneGroup*> first;
    for (std::size_t at = 0; at < std::min(ranked.size(), kGroupsRead); ++at)
      first.push_back(ranked[at].second);
    return first;
  }

  // Another content before another length; then a rank that is short and waits for none.
  std::tuple<int, std::uint64_t> suspicion(const LaneGroup& group, const RankWaits& waits) const {
    std::uint64_t lc = std::numeric_limits<std::uint64_t>::max();
    for (const LaneClass& one : group.classes)
      if (one.order_lc > 0) lc = std::min(lc, one.order_lc);
    if (lc != std::numeric_limits<std::uint64_t>::max()) return {0, lc};
    std::uint64_t longest = 0;
    for (const LaneClass& one : group.classes) longest = std::max(longest, one.size);
    const bool has_absent = std::any_of(group.seats.begin(), group.seats.end(), [&](const auto& s) {
      return s.size() < longest && !waits.is_waiting(s.member);
    });
    return {has_absent ? 1 : 2, 0};
  }

  std::optional<LaneDivergence> earliest_divergence(const LaneGroup& group) {
    std::optional<LaneDivergence> first;
    for (std::size_t at = 1; at < group.classes.size() && at <= kClassesRead; ++at) {
      ++out_.pairs_read;
      auto found = divergence(group, group.classes[at]);
      if (!found) continue;
      if (!first || found->difference.agreed < first->difference.agreed) {
        first = std::move(found);
      } else if (found->difference.agreed == first->difference.agreed &&
                 found->explanation.kind == first->explanation.kind) {
        append(first->odd, found->odd);
        append(first->odd_paths, found->odd_paths);
        std::sort(first->odd.begin(), first->odd.end());
      }
    }
    return first;
  }

  std::optional<LaneDivergence> divergence(const LaneGroup& group, const LaneClass& odd) const {
    const LaneClass& reference = group.classes.front();
    const RunMember& mine = member_of(group, odd.seats.front());
    const RunMember& other = member_of(group, reference.seats.front());
    const bool compares_parameters =
        mine.digest->parameters().names == other.digest->parameters().names &&
        mine.digest->lost().parameters.empty() && other.digest->lost().parameters.empty();
    const RankLane lane{.group = group.name, .sorts_buckets = mine.digest->stage() == 3};
    auto difference =
        first_difference({std::string(mine.path), lane}, {std::string(other.path), lane},
                         {.first_number = group.first_number,
                          .compares_parameters = compares_parameters,
                          .should_stop = should_stop_});
    if (!difference) return std::nullopt;
    LaneDivergence found{.title = group.title(),
                         .seats = group.seats.size(),
                         .reference_path = std::string(other.path)};
    for (const std::size_t seat : reference.seats)
      found.reference.push_back(member_of(group, seat).rank);
    for (const std::size_t seat : odd.seats) {
      found.odd.push_back(member_of(group, seat).rank);
      found.odd_paths.emplace_back(member_of(group, seat).path);
    }
    found.explanation = explain(*difference, compares_parameters);
    found.difference = std::move(*difference);
    const LaneClass& waiting =
        found.explanation.kind == LockstepExplanation::Kind::mine_ended ? reference : odd;
    if (found.is_end() && !is_waited_for(group, waiting, found)) return std::nullopt;
    return found;
  }

  const RunMember& member_of(const LaneGroup& group, std::size_t seat) const {
    return members_[group.seats[seat].member];
  }

  // Whether ranks wait in what the others never issued. If not, the recordings only end in
  // different places.
  bool is_waited_for(const LaneGroup& group, const LaneClass& waiting,
                     const LaneDivergence& at) const {
    const LaneItem& next =
        (at.difference.mine.empty() ? at.difference.other : at.difference.mine).front();
    if (next.number <= group.joined) return false;
    return std::any_of(waiting.seats.begin(), waiting.seats.end(), [&](std::size_t seat) {
      const LaneSeat& one = group.seats[seat];
      const RankDigest& digest = *members_[one.member].digest;
      const bool is_open = one.lane->open.contains(next.number) || digest.has_early_completions();
      return is_open && digest.lost().completions.empty() &&
             digest.may_have_waited_since(next.moment.lc);
    });
  }

  // The smallest is the cause: other content before an end; an end of ranks that wait for none
  // before that of ranks that wait themselves; then the earliest.
  std::tuple<int, std::uint64_t> precedence(const LaneDivergence& at,
                                            const RankWaits& waits) const {
    if (!at.is_end()) return {0, at.age()};
    const auto& absent =
        at.explanation.kind == LockstepExplanation::Kind::mine_ended ? at.odd : at.reference;
    const bool has_free = std::any_of(absent.begin(), absent.end(), [&](std::int32_t rank) {
      return !waits.is_waiting(index_of(rank));
    });
    return {has_free ? 1 : 2, at.age()};
  }

  std::size_t index_of(std::int32_t rank) const {
    const auto at = std::lower_bound(out_.ranks.begin(), out_.ranks.end(), rank);
    return static_cast<std::size_t>(at - out_.ranks.begin());
  }

  static void add_waits(Diagnosis& found, const RankWaits& waits) {
    found.waits = waits.all();
    append(found.order, waits.moments(kWaitMoments));
  }

  // The exceptions of the ranks at fault, then those of the others: they mostly follow.
  void add_exceptions(Diagnosis& found) const {
    std::vector<DiagnosisMoment> moments;
    std::vector<std::string> told;
    for (const bool is_at_fault : {true, false})
      for (const RunMember& member : members_) {
        const auto& exception = member.digest->last_exception();
        const bool is_odd = std::binary_search(found.ranks.begin(), found.ranks.end(), member.rank);
        if (!exception || is_odd != is_at_fault || moments.size() == kExceptionMoments) continue;
        if (std::find(told.begin(), told.end(), exception->text) != told.end()) continue;
        told.push_back(exception->text);
        moments.push_back({member.rank, exception->lc, exception->text, false});
      }
    append(found.order, moments);
  }

  void tell_checked(const std::vector<LaneGroup>& groups, std::uint64_t pairs) {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t most = 0;
    for (const RunMember& member : members_) {
      least = std::min(least, member.digest->collective_count());
      most = std::max(most, member.digest->collective_count());
    }
    if (!groups.empty())
      out_.checked.push_back(
          fmt::format("{} collectives a rank in {} group{} (operation, size, parameter, order)",
                      least == most ? std::to_string(most) : fmt::format("{}–{}", least, most),
                      groups.size(), groups.size() == 1 ? "" : "s"));
    if (pairs > 0)
      out_.checked.push_back(fmt::format("messages of {} pair{} of ranks (order, size)", pairs,
                                         pairs == 1 ? "" : "s"));
    append(out_.checked, replicas_checked_);
  }

  const std::vector<RunMember>& members_;
  const std::function<bool()>& should_stop_;
  RunComparison out_;
  std::vector<std::string> replicas_checked_;
  bool has_divergence_ = false;
};

}  // namespace

RunComparison compare_run(const std::vector<RunMember>& members,
                          const std::function<bool()>& should_stop) {
  return RunComparer(members, should_stop).run();
}

}  // namespace zeroproof

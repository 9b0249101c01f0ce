#include "props/replay/lane_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "props/replay/rank_set.h"

namespace zeroproof {
namespace {

// A group by its name and the number of its list of members, 0 where they are unknown.
using Key = std::pair<std::string, std::size_t>;

class Grouper {
 public:
  explicit Grouper(const std::vector<RunMember>& members) : members_(members) {}

  LaneGroups run() {
    for (std::size_t at = 0; at < members_.size(); ++at) add(at);
    skip_ambiguous_names();
    for (auto& [key, seats] : seats_) add_group(key, std::move(seats));
    if (!lost_.empty())
      out_.skipped.push_back(fmt::format("collectives of {}: {}", rank_words(lost_), lost_reason_));
    return std::move(out_);
  }

 private:
  void add(std::size_t at) {
    const RankDigest& digest = *members_[at].digest;
    if (!digest.lost().issues.empty()) {
      lost_.push_back(members_[at].rank);
      lost_reason_ = digest.lost().issues;
      return;
    }
    at_rank_[members_[at].rank] = at;
    for (const CollectiveLane& lane : digest.collectives()) {
      const std::size_t members = number_of(lane.members);
      seats_[{lane.group, members}].push_back({at, &lane});
      if (members > 0) names_[members][at].insert(lane.group);
    }
  }

  std::size_t number_of(const GroupMembers& members) {
    if (!members) return 0;
    const auto [at, is_new] = member_numbers_.try_emplace(members.get(), member_lists_.size());
    if (is_new) member_lists_.push_back(members);
    return at->second;
  }

  // Two groups of the same ranks are called "g0_1" and "g0_1@7", the one that was used first
  // without its own name. Where ranks used them in another order, the names are ambiguous.
  void skip_ambiguous_names() {
    for (const auto& [members, by_member] : names_) {
      const std::set<std::string>& first = by_member.begin()->second;
      const bool has_alias = std::any_of(by_member.begin(), by_member.end(),
                                         [](const auto& one) { return one.second.size() > 1; });
      const bool agrees = std::all_of(by_member.begin(), by_member.end(), [&](const auto& one) {
        return std::includes(first.begin(), first.end(), one.second.begin(), one.second.end()) ||
               std::includes(one.second.begin(), one.second.end(), first.begin(), first.end());
      });
      if (!has_alias || agrees) continue;
      out_.skipped.push_back(fmt::format(
          "groups of {}: the ranks used them in another order, so that their names do not show "
          "which is which",
          rank_words(*member_lists_[members])));
      std::erase_if(seats_, [&, number = members](const auto& entry) {
        return entry.first.second == number;
      });
    }
  }

  void add_group(const Key& key, std::vector<LaneSeat> seats) {
    if (key.second > 0) add_silent(*member_lists_[key.second], seats);
    if (seats.size() < 2) return;
    std::sort(seats.begin(), seats.end(),
              [](const LaneSeat& a, const LaneSeat& b) { return a.member < b.member; });
    LaneGroup group{.name = key.first, .seats = std::move(seats)};
    std::set<std::int64_t> first_numbers;
    for (const LaneSeat& seat : group.seats) {
      if (seat.lane == nullptr) continue;
      if (group.description.empty()) group.description = seat.lane->description;
      group.joined = std::max(group.joined, seat.lane->joined);
      first_numbers.insert(seat.lane->first_number);
    }
    if (first_numbers.size() > 1) {
      if (shares_numbers(group)) {
        out_.skipped.push_back(
            fmt::format("collectives of group {}: the recordings begin at different ones, and "
                        "send and recv share their numbers",
                        group.name));
        return;
      }
      group.first_number = *first_numbers.rbegin();
    }
    classify(group);
    out_.groups.push_back(std::move(group));
  }

  // Ranks of the group that have a file but no operation on it.
  void add_silent(const std::vector<std::int32_t>& ranks, std::vector<LaneSeat>& seats) const {
    std::set<std::size_t> there;
    for (const LaneSeat& seat : seats) there.insert(seat.member);
    for (const std::int32_t rank : ranks) {
      const auto at = at_rank_.find(rank);
      if (at != at_rank_.end() && !there.contains(at->second)) seats.push_back({at->second});
    }
  }

  // Before hooktrace 1.1 messages counted among the collectives of their group.
  bool shares_numbers(const LaneGroup& group) const {
    return std::any_of(group.seats.begin(), group.seats.end(), [&](const LaneSeat& seat) {
      const RankDigest& digest = *members_[seat.member].digest;
      return digest.message_count() > 0 && !digest.has_peers();
    });
  }

  static void classify(LaneGroup& group) {
    using Content = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::int64_t>;
    std::map<Content, LaneClass> classes;
    for (std::size_t at = 0; at < group.seats.size(); ++at) {
      const CollectiveLane* lane = group.seats[at].lane;
      const Content content = lane == nullptr
                                  ? Content{}
                                  : Content{lane->operations.size(), lane->operations.hash(),
                                            lane->purposes, lane->first_number};
      LaneClass& one = classes[content];
      one.seats.push_back(at);
      one.size = group.seats[at].size();
    }
    for (auto& [content, one] : classes) group.classes.push_back(std::move(one));
    std::sort(group.classes.begin(), group.classes.end(),
              [](const LaneClass& a, const LaneClass& b) {
                return std::tuple(b.seats.size(), a.seats.front()) <
                       std::tuple(a.seats.size(), b.seats.front());
              });
    place_differences(group);
  }

  static void place_differences(LaneGroup& group) {
    const LaneSeat& reference = group.seats[group.classes.front().seats.front()];
    for (std::size_t at = 1; at < group.classes.size(); ++at) {
      const LaneSeat& odd = group.seats[group.classes[at].seats.front()];
      if (odd.lane == nullptr || reference.lane == nullptr) continue;
      const auto difference = odd.lane->operations.first_difference(reference.lane->operations);
      if (difference) group.classes[at].order_lc = difference->lc;
    }
  }

  const std::vector<RunMember>& members_;
  LaneGroups out_;
  std::map<Key, std::vector<LaneSeat>> seats_;
  std::map<const std::vector<std::int32_t>*, std::size_t> member_numbers_;     // never iterated
  std::vector<GroupMembers> member_lists_ = {nullptr};                         // by number
  std::map<std::size_t, std::map<std::size_t, std::set<std::string>>> names_;  // members, member
  std::map<std::int32_t, std::size_t> at_rank_;
  std::vector<std::int32_t> lost_;
  std::string lost_reason_;
};

}  // namespace

// PyTorch describes the world as "default_pg", which is left out.
std::string LaneGroup::title() const {
  const bool says_more = !description.empty() && description != name && description != "default_pg";
  return says_more ? fmt::format("{} ({})", name, description) : name;
}

LaneGroups lane_groups(const std::vector<RunMember>& members) {
  return Grouper(members).run();
}

}  // namespace zeroproof

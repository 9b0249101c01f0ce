#include "props/replay/rank_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace zeroproof {

RankWaits::RankWaits(const std::vector<RunMember>& members, const std::vector<LaneGroup>& groups)
    : members_(members), waits_(members.size()) {
  for (const LaneGroup& group : groups)
    for (const LaneSeat& seat : group.seats) {
      if (seat.lane == nullptr) continue;
      const OpenNumbers::Item* open = seat.lane->open.first();
      if (open == nullptr || open->number <= group.joined) continue;
      offer(seat.member, {&group, open->number, open->lc, seat.lane->open_text, -1});
    }
  for (std::size_t at = 0; at < members.size(); ++at)
    for (const MessageLane& lane : members[at].digest->messages())
      if (const OpenNumbers::Item* open = lane.open.first(); open != nullptr && lane.peer >= 0)
        offer(at, {nullptr, open->number, open->lc, lane.open_text, lane.peer});
}

void RankWaits::offer(std::size_t member, Wait wait) {
  const RankDigest& digest = *members_[member].digest;
  if (!digest.lost().completions.empty() || !digest.may_have_waited_since(wait.lc)) return;
  auto& known = waits_[member];
  if (!known || wait.lc < known->lc) known = std::move(wait);
}

bool RankWaits::is_waiting_in(std::size_t member, const LaneGroup& group,
                              std::int64_t number) const {
  const auto& wait = waits_[member];
  return wait && wait->group == &group && wait->number == number;
}

std::vector<std::int32_t> RankWaits::awaited_ranks(const Wait& wait) const {
  if (wait.group == nullptr) return {wait.peer};
  std::vector<std::int32_t> ranks;
  for (const LaneSeat& seat : wait.group->seats)
    if (!is_waiting_in(seat.member, *wait.group, wait.number))
      ranks.push_back(members_[seat.member].rank);
  return ranks;
}

std::vector<DiagnosisWait> RankWaits::all() const {
  std::map<std::tuple<std::string, std::int32_t>, DiagnosisWait> places;
  for (std::size_t at = 0; at < waits_.size(); ++at) {
    if (!waits_[at]) continue;
    const Wait& wait = *waits_[at];
    DiagnosisWait& place = places[{wait.text, wait.group == nullptr ? wait.peer : -1}];
    if (place.ranks.empty()) {
      place.rank = members_[at].rank;
      place.for_ranks = awaited_ranks(wait);
      place.text = wait.text;
    }
    place.ranks.push_back(members_[at].rank);
  }
  std::vector<DiagnosisWait> all;
  for (auto& [key, place] : places) all.push_back(std::move(place));
  std::stable_sort(all.begin(), all.end(), [](const DiagnosisWait& a, const DiagnosisWait& b) {
    return std::tuple(b.ranks.size(), a.rank) < std::tuple(a.ranks.size(), b.rank);
  });
  return all;
}

std::vector<DiagnosisMoment> RankWaits::moments(std::size_t moments_max) const {
  std::vector<DiagnosisMoment> moments;
  std::vector<std::string> told;
  for (std::size_t at = 0; at < waits_.size() && moments.size() < moments_max; ++at) {
    if (!waits_[at] || std::find(told.begin(), told.end(), waits_[at]->text) != told.end())
      continue;
    told.push_back(waits_[at]->text);
    moments.push_back(
        {members_[at].rank, waits_[at]->lc, waits_[at]->text + " never completes", true});
  }
  return moments;
}

}  // namespace zeroproof

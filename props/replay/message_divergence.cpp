#include "props/replay/message_divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "props/replay/rank_lockstep.h"
#include "props/replay/rank_set.h"

namespace zeroproof {
namespace {

constexpr std::string_view kRule =
    "send and recv pair in order: the nth send of a rank to another meets the nth recv there, with "
    "the same size";

// What one rank sent to another, from both sides; a side without messages is null.
struct Channel {
  const MessageLane* sent = nullptr;
  const MessageLane* received = nullptr;
};

std::uint64_t count_of(const MessageLane* lane) {
  return lane == nullptr ? 0 : lane->count;
}

class Messages {
 public:
  Messages(const std::vector<RunMember>& members, const RankWaits& waits,
           const std::function<bool()>& should_stop)
      : members_(members), waits_(waits.all()), should_stop_(should_stop) {}

  MessageComparison run() {
    for (std::size_t at = 0; at < members_.size(); ++at) at_rank_[members_[at].rank] = at;
    if (!can_compare()) return std::move(out_);
    for (std::size_t at = 0; at < members_.size(); ++at) add(at);
    for (const auto& [key, channel] : channels_) {
      ++out_.pairs;
      if (out_.found.empty()) compare(key, channel);
    }
    return std::move(out_);
  }

 private:
  using Key = std::tuple<std::size_t, std::size_t, std::string>;  // sender, receiver, group

  bool can_compare() {
    bool has_messages = false;
    std::string reason;
    for (const RunMember& member : members_) {
      const RankDigest& digest = *member.digest;
      if (!digest.lost().issues.empty()) reason = digest.lost().issues;
      if (digest.message_count() == 0) continue;
      has_messages = true;
      if (!digest.has_peers())
        reason = "the files do not say with whom (recorded before hooktrace 1.1)";
      else if (digest.has_too_many_messages())
        reason = fmt::format("a rank has more than {} partners", RankDigest::kMessageLanesMax);
    }
    if (has_messages && !reason.empty()) out_.skipped.push_back("send and recv: " + reason);
    return has_messages && reason.empty();
  }

  // A rank that receives from anyone pairs in the order of arrival, which no file shows.
  bool receives_from_anyone(std::size_t member) const {
    return members_[member].digest->has_any_source();
  }

  void add(std::size_t at) {
    for (const MessageLane& lane : members_[at].digest->messages()) {
      const auto peer = at_rank_.find(lane.peer);
      if (peer == at_rank_.end()) continue;
      const std::size_t sender = lane.is_send ? at : peer->second;
      const std::size_t receiver = lane.is_send ? peer->second : at;
      if (receives_from_anyone(receiver)) continue;
      Channel& channel = channels_[{sender, receiver, lane.group}];
      (lane.is_send ? channel.sent : channel.received) = &lane;
    }
  }

  void compare(const Key& key, const Channel& channel) {
    const std::uint64_t sent = count_of(channel.sent);
    const std::uint64_t received = count_of(channel.received);
    const bool has_same_sizes = sent == received && channel.sent->sizes == channel.received->sizes;
    if (has_same_sizes) return;
    const auto [sender, receiver, group] = key;
    // A recording may be cut between a send and its recv; a rank that waits proves more.
    if (sent != received && !waits_for(sender, receiver) && !waits_for(receiver, sender)) return;
    const RunMember& from = members_[sender];
    const RunMember& to = members_[receiver];
    const RankLane send_lane{RankLane::Kind::messages, group, to.rank, true, false};
    const RankLane recv_lane{RankLane::Kind::messages, group, from.rank, false, false};
    const auto difference =
        first_difference({std::string(from.path), send_lane}, {std::string(to.path), recv_lane},
                         {.should_stop = should_stop_});
    if (difference) tell(from, to, group, *difference);
  }

  bool waits_for(std::size_t member, std::size_t other) const {
    return std::any_of(waits_.begin(), waits_.end(), [&](const DiagnosisWait& wait) {
      return std::binary_search(wait.ranks.begin(), wait.ranks.end(), members_[member].rank) &&
             wait.for_ranks == std::vector{members_[other].rank};
    });
  }

  void tell(const RunMember& from, const RunMember& to, const std::string& group,
            const LockstepDifference& at) {
    Diagnosis found{.gravity = Gravity::defect};
    found.rule = kRule;
    found.files = {std::string(from.path), std::string(to.path)};
    const std::uint64_t number = at.agreed + 1;
    for (const auto* before : {&at.mine_before, &at.other_before})
      if (*before) found.order.push_back((*before)->moment);
    for (const auto* items : {&at.mine, &at.other})
      if (!items->empty()) {
        found.order.push_back(items->front().moment);
        found.order.back().is_bad = true;
      }
    if (!at.mine.empty() && !at.other.empty()) {
      found.kind = "message.size_differs";
      found.ranks = {std::min(from.rank, to.rank), std::max(from.rank, to.rank)};
      found.what = fmt::format(
          "message {} from rank {} to rank {} on group {} is sent with {} bytes and received with "
          "{}",
          number, from.rank, to.rank, group, at.mine.front().bytes, at.other.front().bytes);
      found.look_at = "the shapes that both ranks expect of this message";
    } else {
      const bool is_sent = !at.mine.empty();
      const RunMember& absent = is_sent ? to : from;
      const RunMember& waiting = is_sent ? from : to;
      found.kind = "message.missing";
      found.ranks = {absent.rank};
      found.what = fmt::format(
          "rank {} never issued the {} of message {} {} rank {} on group {}, for which rank {} "
          "waits",
          absent.rank, is_sent ? "recv" : "send", number, is_sent ? "from" : "to", waiting.rank,
          group, waiting.rank);
      DiagnosisMoment last = is_sent ? at.other_last : at.mine_last;
      if (!last.text.empty()) {
        last.text = "the last thing on this rank: " + last.text;
        found.order.push_back(std::move(last));
      }
      found.look_at = fmt::format(
          "what rank {} did instead: another number of micro-batches, an exception, another order "
          "of send and recv",
          absent.rank);
    }
    out_.found.push_back(std::move(found));
  }

  const std::vector<RunMember>& members_;
  std::vector<DiagnosisWait> waits_;
  const std::function<bool()>& should_stop_;
  MessageComparison out_;
  std::map<std::int32_t, std::size_t> at_rank_;
  std::map<Key, Channel> channels_;
};

}  // namespace

MessageComparison compare_messages(const std::vector<RunMember>& members, const RankWaits& waits,
                                   const std::function<bool()>& should_stop) {
  return Messages(members, waits, should_stop).run();
}

}  // namespace zeroproof

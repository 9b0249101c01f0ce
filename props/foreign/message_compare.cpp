#include "props/foreign/message_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "props/foreign/dump_words.h"
#include "props/foreign/flight_match.h"
#include "props/replay/moment.h"
#include "props/replay/rank_set.h"

namespace zeroproof {
namespace {

struct PairKey {
  std::string group;
  std::int32_t from = -1;
  std::int32_t to = -1;

  auto operator<=>(const PairKey&) const = default;
};

using DumpedMessages = std::vector<const DumpedCollective*>;

struct Pair {
  DumpedMessages sends;
  DumpedMessages receives;
};

std::size_t waiting_in(const DumpedMessages& messages) {
  return static_cast<std::size_t>(std::count_if(messages.begin(), messages.end(),
                                                [](const auto* one) { return one->is_waiting(); }));
}

class DumpedMessageComparison {
 public:
  DumpedMessageComparison(const std::vector<RankDump>& run, FlightVerdictCounts& verdicts,
                          std::vector<DumpFinding>& findings)
      : run_(run), verdicts_(verdicts), findings_(findings) {}

  void run() {
    for (const RankDump& dump : run_) {
      dumps_[dump.rank] = &dump;
      for (const DumpedCollective& one : dump.collectives) add(dump, one);
    }
    for (const auto& [key, pair] : pairs_) compare(key, pair);
  }

 private:
  // A rank's own end is its own: what the name of an operation says of the group's ranks is only
  // taken for the peer.
  void add(const RankDump& dump, const DumpedCollective& one) {
    const std::string& op = one.shape->op;
    const bool is_send = op == "send";
    if (!one.is_point_to_point || (!is_send && op != "recv")) return;
    const PairKey key = {one.shape->group, one.from_rank, one.to_rank};
    if (key.from < 0 || key.to < 0) {
      any_source_.insert({key.group, key.to});
      return;
    }
    const bool is_own = (is_send ? key.from : key.to) == dump.rank;
    if (!is_own && dump.groups.contains(key.group)) return;
    (is_send ? pairs_[key].sends : pairs_[key].receives).push_back(&one);
  }

  void compare(const PairKey& key, const Pair& pair) {
    const auto from = dumps_.find(key.from);
    const auto to = dumps_.find(key.to);
    if (from == dumps_.end() || to == dumps_.end())
      return report_without_file(key, pair, from == dumps_.end());
    if (from->second->is_truncated || to->second->is_truncated) return;
    if (match(key, pair, *from->second, *to->second)) return;
    const std::size_t sends = waiting_in(pair.sends);
    const std::size_t receives = waiting_in(pair.receives);
    const bool may_be_any = any_source_.contains({key.group, key.to});
    if (sends > receives && !may_be_any)
      report_absent(*from->second, *to->second, pair.sends[pair.sends.size() - sends + receives]);
    else if (receives > sends)
      report_absent(*to->second, *from->second,
                    pair.receives[pair.receives.size() - receives + sends]);
    else if (sends > 0 && !may_be_any)
      report_together(*from->second, *to->second, *pair.sends[pair.sends.size() - sends]);
  }

  // True at messages whose sizes differ. The first ones belong together where both dumps have all,
  // else the last ones that are complete; only a pair of equal length leaves no doubt.
  bool match(const PairKey& key, const Pair& pair, const RankDump& from, const RankDump& to) {
    const std::size_t common = std::min(pair.sends.size(), pair.receives.size());
    const auto first_bad = [&](std::size_t skipped_sends, std::size_t skipped_receives) {
      for (std::size_t at = 0; at < common; ++at)
        if (!match_collectives(*pair.sends[at + skipped_sends],
                               *pair.receives[at + skipped_receives], 2)
                 .is_fine())
          return at;
      return common;
    };
    const std::size_t bad = first_bad(0, 0);
    const bool agrees_at_end = bad < common && first_bad(pair.sends.size() - common,
                                                         pair.receives.size() - common) == common;
    const bool is_fine = bad == common || agrees_at_end;
    if (common > 0) verdicts_["FULLY_MATCHED"] += is_fine ? common : bad;
    const bool is_cut = from.first_record > 1 || to.first_record > 1 || from.is_window() ||
                        to.is_window() || any_source_.contains({key.group, key.to});
    if (is_fine || is_cut) return false;
    ++verdicts_["SIZE_OR_SYNTAX_MISMATCH"];
    report_sizes(from, to, *pair.sends[bad], *pair.receives[bad]);
    return true;
  }

  static bool has_finished(const RankDump& dump) {
    return std::any_of(dump.collectives.begin(), dump.collectives.end(),
                       [](const DumpedCollective& one) { return !one.is_waiting(); });
  }

  static Diagnosis base(std::string kind, const DumpedCollective& one) {
    Diagnosis found{.kind = std::move(kind)};
    found.rule =
        "every send meets a receive of the same size on its peer, in the same order (c10d)";
    found.collective = place_words(one);
    return found;
  }

  void report_sizes(const RankDump& from, const RankDump& to, const DumpedCollective& sent,
                    const DumpedCollective& received) {
    Diagnosis found = base("flight.SIZE_OR_SYNTAX_MISMATCH", sent);
    found.ranks = {std::min(from.rank, to.rank), std::max(from.rank, to.rank)};
    found.files = {from.path, to.path};
    found.what =
        fmt::format("{} on rank {} meets {} on rank {}", with_article(operation_words(sent)),
                    from.rank, with_article(operation_words(received)), to.rank);
    found.order = {dump_moment(from, sent, true), dump_moment(to, received, true)};
    found.look_at = "the tensors that the two ranks send and receive, and the order of messages";
    findings_.push_back({std::move(found), {}, {}});
  }

  // The peer has posted fewer messages than wait for it.
  void report_absent(const RankDump& waiting, const RankDump& peer, const DumpedCollective* one) {
    const bool is_send = one->shape->op == "send";
    Diagnosis found = base("collective.missing", *one);
    found.ranks = {peer.rank};
    found.files = {peer.path, waiting.path};
    found.what =
        fmt::format("rank {} has not posted the {} for {} of {}: rank {} waits in it", peer.rank,
                    is_send ? "receive" : "send", with_article(operation_words(*one)),
                    group_words(one->shape->group, one->shape->group_desc), waiting.rank);
    if (!peer.collectives.empty())
      found.order.push_back(dump_moment(peer, peer.collectives.back(), false));
    found.order.push_back(dump_moment(waiting, *one, true));
    found.waits = {{.rank = waiting.rank, .for_ranks = {peer.rank}, .text = place_words(*one)}};
    found.look_at = fmt::format(
        "what rank {} does after its last operation above, and whether it posts as many messages "
        "as rank {}",
        peer.rank, waiting.rank);
    if (one->number > 1 && !has_finished(peer)) {  // dumps of active operations only
      found.kind = "collective.not_complete";
      found.gravity = Gravity::hazard;
      found.what += "; its dump holds no finished operation, so it may have completed it";
    }
    findings_.push_back({std::move(found), {peer.rank}, {waiting.rank}});
  }

  // One end alone does not show whether the other came.
  void report_without_file(const PairKey& key, const Pair& pair, bool is_sender_away) {
    const DumpedMessages& here = is_sender_away ? pair.receives : pair.sends;
    const std::size_t count = waiting_in(here);
    const auto dump = dumps_.find(is_sender_away ? key.to : key.from);
    if (count == 0 || dump == dumps_.end()) return;
    const DumpedCollective& one = *here[here.size() - count];
    const std::int32_t peer = is_sender_away ? key.from : key.to;
    Diagnosis found = base("collective.not_complete", one);
    found.gravity = Gravity::hazard;
    found.ranks = {dump->first};
    found.files = {dump->second->path};
    found.what = fmt::format("rank {} waits in {} of {}, and rank {} left no file", dump->first,
                             with_article(operation_words(one)),
                             group_words(one.shape->group, one.shape->group_desc), peer);
    found.order = {dump_moment(*dump->second, one, true)};
    found.look_at =
        fmt::format("the dump of rank {}: it shows whether the other end is there", peer);
    findings_.push_back({std::move(found), {peer}, {dump->first}});
  }

  void report_together(const RankDump& from, const RankDump& to, const DumpedCollective& one) {
    Diagnosis found = base("collective.stuck_together", one);
    found.ranks = {std::min(from.rank, to.rank), std::max(from.rank, to.rank)};
    found.files = {from.path, to.path};
    found.what =
        fmt::format("{} of {} is posted on both ranks and does not complete", operation_words(one),
                    group_words(one.shape->group, one.shape->group_desc));
    found.order = {dump_moment(from, one, true)};
    found.look_at = "the network between the two ranks and their GPUs: both came to the message";
    findings_.push_back({found, {}, found.ranks});
  }

  const std::vector<RankDump>& run_;
  FlightVerdictCounts& verdicts_;
  std::vector<DumpFinding>& findings_;
  std::map<std::int32_t, const RankDump*> dumps_;
  std::map<PairKey, Pair> pairs_;
  std::set<std::pair<std::string, std::int32_t>> any_source_;  // group and receiver
};

}  // namespace

void compare_messages(const std::vector<RankDump>& run, FlightVerdictCounts& verdicts,
                      std::vector<DumpFinding>& findings) {
  DumpedMessageComparison(run, verdicts, findings).run();
}

}  // namespace zeroproof

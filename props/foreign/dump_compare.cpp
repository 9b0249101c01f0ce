#include "props/foreign/dump_compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <set>

#include "props/replay/moment.h"

namespace zeroproof {
namespace {

std::string words_of(const DumpedCollective& one) {
  std::string text = one.op;
  if (one.is_point_to_point()) text += fmt::format(" {}->{}", one.peer_from, one.peer_to);
  if (!one.input_sizes.empty()) text += fmt::format(" of sizes {}", one.input_sizes);
  return text;
}

std::string place_of(const DumpedCollective& one) {
  return fmt::format("{} number {} of group {}", one.op, one.number, one.group);
}

DiagnosisMoment moment_of(const RankDump& dump, const DumpedCollective& one, bool is_bad) {
  std::string text = fmt::format("{}: {}", place_of(one), words_of(one));
  if (!one.state.empty()) text += ", " + one.state;
  if (!one.frame.empty()) text += ", from " + one.frame;
  return {dump.rank, 0, std::move(text), is_bad};
}

constexpr std::string_view kRule =
    "P45 collective.same_sequence_on_all_ranks: all ranks issue the same sequence of (operation, "
    "group, "
    "dtype, size)";

// The collectives of one group on one rank, in order.
struct GroupView {
  std::size_t dump = 0;
  std::vector<const DumpedCollective*> issued;

  std::int64_t last() const { return issued.back()->number; }
  const DumpedCollective* at(std::int64_t number) const {
    const auto found = std::lower_bound(
        issued.begin(), issued.end(), number,
        [](const DumpedCollective* one, std::int64_t wanted) { return one->number < wanted; });
    return found != issued.end() && (*found)->number == number ? *found : nullptr;
  }
};

class DumpComparison {
 public:
  DumpComparison(std::vector<RankDump> dumps, DumpReport& report)
      : dumps_(std::move(dumps)), report_(report) {}

  void run() {
    std::set<std::string> groups;
    for (const RankDump& dump : dumps_)
      for (const DumpedCollective& one : dump.collectives) groups.insert(one.group);
    for (const std::string& group : groups) compare_group(group);
    compare_messages();
    compare_nodes();
  }

 private:
  std::vector<std::int32_t> members(const std::string& group) const {
    for (const RankDump& dump : dumps_) {
      const auto known = dump.groups.find(group);
      if (known != dump.groups.end() && !known->second.empty()) return known->second;
      if (dump.groups.size() == 1 && !dump.groups.begin()->second.empty())
        return dump.groups.begin()->second;
    }
    std::vector<std::int32_t> seen;
    for (const RankDump& dump : dumps_)
      if (std::any_of(dump.collectives.begin(), dump.collectives.end(),
                      [&](const auto& one) { return one.group == group; }))
        seen.push_back(dump.rank);
    return seen;
  }

  std::vector<GroupView> views(const std::string& group,
                               const std::vector<std::int32_t>& ranks) const {
    std::vector<GroupView> all;
    for (std::size_t at = 0; at < dumps_.size(); ++at) {
      const RankDump& dump = dumps_[at];
      if (std::find(ranks.begin(), ranks.end(), dump.rank) == ranks.end()) continue;
      GroupView view{.dump = at, .issued = {}};
      for (const DumpedCollective& one : dump.collectives)
        if (one.group == group && !one.is_point_to_point()) view.issued.push_back(&one);
      std::stable_sort(view.issued.begin(), view.issued.end(),
                       [](const auto* a, const auto* b) { return a->number < b->number; });
      all.push_back(std::move(view));
    }
    return all;
  }

  void compare_group(const std::string& group) {
    const std::vector<std::int32_t> ranks = members(group);
    std::vector<GroupView> all = views(group, ranks);
    const bool has_none =
        std::all_of(all.begin(), all.end(), [](const auto& view) { return view.issued.empty(); });
    if (all.size() < 2 || has_none) return;
    std::int64_t first = 0;  // a ring buffer has dropped what came before
    std::set<std::int64_t> numbers;
    for (const GroupView& view : all) {
      if (!view.issued.empty()) first = std::max(first, view.issued.front()->number);
      for (const DumpedCollective* one : view.issued) numbers.insert(one->number);
    }
    for (const std::int64_t number : numbers)
      if (number >= first && compare_number(group, number, all, ranks.size())) return;
  }

  // True at the first number that ranks do not share.
  bool compare_number(const std::string& group, std::int64_t number,
                      const std::vector<GroupView>& all, std::size_t size) {
    std::vector<std::size_t> there;
    std::vector<std::size_t> absent;
    for (std::size_t at = 0; at < all.size(); ++at)
      (all[at].at(number) != nullptr ? there : absent).push_back(at);
    if (there.empty()) return false;
    const GroupView& reference = all[there.front()];
    for (std::size_t at = 1; at < there.size(); ++at) {
      const FlightMatch match =
          match_collectives(*reference.at(number), *all[there[at]].at(number), size);
      ++report_.verdicts[std::string(flight_verdict_name(match.verdict))];
      const bool is_fine = match.verdict == FlightVerdict::fully_matched ||
                           match.verdict == FlightVerdict::undecided;
      if (!is_fine && report_mismatch(number, reference, all[there[at]], match, size)) return true;
    }
    if (absent.empty()) {
      last_common_[group] = moment_of(dump_of(reference), *reference.at(number), false);
      return false;
    }
    report_missing(group, number, all, there, absent);
    return true;
  }

  const RankDump& dump_of(const GroupView& view) const { return dumps_[view.dump]; }

  Diagnosis base(std::string kind, const std::string& group) const {
    Diagnosis found{.kind = std::move(kind)};
    found.rule = std::string(kRule);
    const auto common = last_common_.find(group);
    if (common != last_common_.end()) found.last_common = common->second;
    return found;
  }

  // A difference of states is told and passed over: the ranks still mean the same collective.
  bool report_mismatch(std::int64_t number, const GroupView& reference, const GroupView& odd,
                       const FlightMatch& match, std::size_t size) {
    const DumpedCollective& theirs = *reference.at(number);
    const DumpedCollective& mine = *odd.at(number);
    const bool is_state = match.verdict == FlightVerdict::collective_state_mismatch;
    Diagnosis found = base("flight." + std::string(flight_verdict_name(match.verdict)), mine.group);
    found.gravity = is_state ? Gravity::hazard : Gravity::defect;
    found.ranks = {dump_of(reference).rank, dump_of(odd).rank};
    found.files = {dump_of(reference).path, dump_of(odd).path};
    found.collective = place_of(mine);
    found.what = fmt::format("{}: number {} of group {} is {} on rank {} and {} on rank {} ({})",
                             flight_verdict_name(match.verdict), number, mine.group,
                             with_article(words_of(theirs)), dump_of(reference).rank,
                             with_article(words_of(mine)), dump_of(odd).rank, match.difference);
    found.order = {moment_of(dump_of(reference), theirs, true),
                   moment_of(dump_of(odd), mine, true)};
    found.look_at = is_state ? "the rank that has not completed it: it waits, or it is slow"
                             : "what differs between the two ranks just before it: shapes, dtypes, "
                               "branches on the data";
    if (!is_state) add_skip(number, reference, odd, size, found);
    report_.diagnosis.push_back(std::move(found));
    return !is_state;
  }

  // Whether one rank's sequence continues as the other's does one number later: it left one out.
  void add_skip(std::int64_t number, const GroupView& reference, const GroupView& odd,
                std::size_t size, Diagnosis& found) const {
    const auto fits = [&](const GroupView& full, const GroupView& shorter) {
      std::int64_t agreed = 0;
      for (std::int64_t at = number; at <= shorter.last(); ++at, ++agreed) {
        const DumpedCollective* mine = shorter.at(at);
        const DumpedCollective* theirs = full.at(at + 1);
        if (mine == nullptr || theirs == nullptr) break;
        const FlightVerdict verdict = match_collectives(*theirs, *mine, size).verdict;
        if (verdict != FlightVerdict::fully_matched &&
            verdict != FlightVerdict::collective_state_mismatch)
          return std::int64_t{0};
      }
      return agreed;
    };
    const std::int64_t if_odd = fits(reference, odd);
    const std::int64_t if_reference = fits(odd, reference);
    if (if_odd == 0 && if_reference == 0) return;
    const GroupView& shorter = if_odd >= if_reference ? odd : reference;
    const GroupView& full = if_odd >= if_reference ? reference : odd;
    found.what += fmt::format(
        "; from there on rank {} goes on as rank {} does one collective later: "
        "rank {} left out the {}",
        dump_of(shorter).rank, dump_of(full).rank, dump_of(shorter).rank,
        words_of(*full.at(number)));
    found.look_at =
        fmt::format("why rank {} left it out: the branch must decide the same on every rank",
                    dump_of(shorter).rank);
  }

  void report_missing(const std::string& group, std::int64_t number,
                      const std::vector<GroupView>& all, const std::vector<std::size_t>& there,
                      const std::vector<std::size_t>& absent) {
    const DumpedCollective& missed = *all[there.front()].at(number);
    Diagnosis found = base("collective.missing", group);
    found.collective = place_of(missed);
    std::vector<std::int32_t> waiting;
    std::vector<std::int32_t> missing;
    for (const std::size_t at : there) waiting.push_back(dump_of(all[at]).rank);
    for (const std::size_t at : absent) missing.push_back(dump_of(all[at]).rank);
    found.ranks = missing;
    found.what = fmt::format("{} not issued number {} of group {}, {}: {} there for it",
                             rank_list(missing, "has", "have"), number, group,
                             with_article(words_of(missed)), rank_list(waiting, "waits", "wait"));
    for (const std::size_t at : absent) {
      const GroupView& view = all[at];
      found.files.push_back(dump_of(view).path);
      if (!view.issued.empty())
        found.order.push_back(moment_of(dump_of(view), *view.issued.back(), false));
    }
    for (const std::size_t at : there) {
      found.files.push_back(dump_of(all[at]).path);
      found.order.push_back(moment_of(dump_of(all[at]), *all[at].at(number), true));
      found.waits.push_back(
          {.rank = dump_of(all[at]).rank, .for_ranks = missing, .text = place_of(missed)});
    }
    found.look_at =
        "what the missing rank does after its last collective above: its stack, its log, "
        "and the branch that leads there";
    report_.diagnosis.push_back(std::move(found));
  }

  static std::string rank_list(const std::vector<std::int32_t>& ranks, std::string_view one,
                               std::string_view many) {
    if (ranks.size() == 1) return fmt::format("rank {} {}", ranks.front(), one);
    return fmt::format("ranks {} {}", fmt::join(ranks, ", "), many);
  }

  // The k-th send of a pair of ranks belongs to its k-th receive.
  void compare_messages() {
    struct End {
      std::size_t dump = 0;
      const DumpedCollective* message = nullptr;
    };
    std::map<std::tuple<std::string, std::int32_t, std::int32_t>,
             std::pair<std::deque<End>, std::deque<End>>>
        pairs;
    for (std::size_t at = 0; at < dumps_.size(); ++at)
      for (const DumpedCollective& one : dumps_[at].collectives)
        if (one.is_point_to_point()) {
          auto& ends = pairs[{one.group, one.peer_from, one.peer_to}];
          (one.op == "send" ? ends.first : ends.second).push_back({at, &one});
        }
    for (auto& [key, ends] : pairs) {
      auto& [sends, receives] = ends;
      while (!sends.empty() && !receives.empty()) {
        const FlightMatch match =
            match_collectives(*sends.front().message, *receives.front().message, 2);
        ++report_.verdicts[std::string(flight_verdict_name(match.verdict))];
        if (match.verdict != FlightVerdict::fully_matched) break;
        sends.pop_front();
        receives.pop_front();
      }
      if (sends.empty() && receives.empty()) continue;
      const bool has_both = !sends.empty() && !receives.empty();
      const End& end = sends.empty() ? receives.front() : sends.front();
      Diagnosis found = base(has_both ? "flight.SIZE_OR_SYNTAX_MISMATCH" : "collective.missing",
                             end.message->group);
      found.ranks = {dumps_[end.dump].rank};
      found.files = {dumps_[end.dump].path};
      found.collective = place_of(*end.message);
      found.what = has_both
                       ? fmt::format("a {} meets a receive of another size", words_of(*end.message))
                       : fmt::format("a {} has no other end", words_of(*end.message));
      found.order = {moment_of(dumps_[end.dump], *end.message, true)};
      found.look_at = "the other rank of the pair: whether it posts the same number of messages";
      report_.diagnosis.push_back(std::move(found));
    }
  }

  // The order of autograd's nodes, by name; sequence numbers are those of one process.
  void compare_nodes() {
    const RankDump* first = nullptr;
    for (const RankDump& dump : dumps_) {
      if (dump.nodes.empty()) continue;
      if (first == nullptr) first = &dump;
      const auto [mine, theirs] = std::mismatch(
          dump.nodes.begin(), dump.nodes.end(), first->nodes.begin(), first->nodes.end(),
          [](const DumpedNode& a, const DumpedNode& b) { return a.name == b.name; });
      if (mine == dump.nodes.end() && theirs == first->nodes.end()) continue;
      const auto name = [](const auto at, const auto end) {
        return at == end ? std::string("nothing more") : at->name;
      };
      Diagnosis found{.kind = "autograd.node_order_differs",
                      .gravity = Gravity::hazard,
                      .ranks = {first->rank, dump.rank}};
      const auto index = mine - dump.nodes.begin();
      found.what = fmt::format("node {} of the backward is {} on rank {} and {} on rank {}", index,
                               name(theirs, first->nodes.end()), first->rank,
                               name(mine, dump.nodes.end()), dump.rank);
      found.files = {first->path, dump.path};
      found.rule = "bucketed reductions need the same order of gradients on all ranks";
      found.look_at =
          "what makes the graphs of the two ranks differ: branches, other shapes, modules "
          "that only one of them uses";
      report_.diagnosis.push_back(std::move(found));
      return;
    }
  }

  std::vector<RankDump> dumps_;
  DumpReport& report_;
  std::map<std::string, DiagnosisMoment> last_common_;
};

}  // namespace

bool DumpReport::is_falsified() const {
  return std::any_of(diagnosis.begin(), diagnosis.end(),
                     [](const Diagnosis& one) { return one.gravity == Gravity::defect; });
}

namespace {

// Dumps of one run have the same name but for their rank, and are of one kind.
std::string run_of(const RankDump& dump) {
  const std::size_t slash = dump.path.rfind('/');
  const std::size_t dot = dump.path.find('.', slash == std::string::npos ? 0 : slash);
  std::string stem = dump.path.substr(0, dot);
  std::size_t end = stem.size();
  const std::size_t word = stem.rfind("rank");
  if (word != std::string::npos && (slash == std::string::npos || word > slash)) {
    std::size_t digits = word + 4;
    while (digits < stem.size() && !std::isdigit(static_cast<unsigned char>(stem[digits])))
      ++digits;
    end = digits;
    while (end < stem.size() && std::isdigit(static_cast<unsigned char>(stem[end]))) ++end;
    if (end > digits) stem.replace(digits, end - digits, "#");
  } else {
    while (end > 0 && std::isdigit(static_cast<unsigned char>(stem[end - 1]))) --end;
    stem = stem.substr(0, end) + "#";
  }
  return stem + (dump.format == DumpFormat::kineto ? " kineto" : " flight recorder");
}

// The same rank twice, as JSON and as pickle: one of them is compared.
std::vector<RankDump> one_a_rank(std::vector<RankDump> dumps) {
  std::vector<RankDump> kept;
  for (RankDump& dump : dumps) {
    const bool is_known = std::any_of(kept.begin(), kept.end(),
                                      [&](const RankDump& one) { return one.rank == dump.rank; });
    if (!is_known) kept.push_back(std::move(dump));
  }
  return kept;
}

// Runs of their own; dumps whose names have nothing in common are one run.
std::map<std::string, std::vector<RankDump>> by_run(std::vector<RankDump> dumps) {
  std::map<std::string, std::vector<RankDump>> runs;
  for (const RankDump& dump : dumps) runs[run_of(dump)].push_back(dump);
  const bool are_all_alone =
      std::all_of(runs.begin(), runs.end(), [](const auto& run) { return run.second.size() == 1; });
  if (are_all_alone) runs = {{"", std::move(dumps)}};
  return runs;
}

}  // namespace

DumpReport compare_dumps(std::vector<RankDump> dumps) {
  DumpReport report;
  std::int32_t place = 0;
  for (RankDump& dump : dumps) {
    if (dump.rank < 0) dump.rank = place;
    ++place;
    report.collectives.push_back(dump.collectives.size());
    report.nodes.push_back(dump.nodes.size());
    report.dumps.push_back(
        {dump.path, dump.format, dump.version, dump.rank, dump.world, {}, {}, {}, dump.events});
  }
  for (auto& [run, ranks] : by_run(std::move(dumps)))
    DumpComparison(one_a_rank(std::move(ranks)), report).run();
  return report;
}

}  // namespace zeroproof

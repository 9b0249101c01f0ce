#include "props/foreign/group_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "props/foreign/dump_words.h"
#include "props/foreign/flight_match.h"
#include "props/foreign/group_hang.h"
#include "props/foreign/group_progress.h"
#include "props/foreign/window_align.h"
#include "props/replay/moment.h"
#include "props/replay/rank_set.h"

namespace zeroproof {
namespace {

// The views that mean the same at a number; their states may differ.
struct Meaning {
  const DumpedCollective* one = nullptr;
  std::vector<std::size_t> views;
  std::map<OpState, std::size_t> states;

  void add(std::size_t view, OpState state) {
    views.push_back(view);
    ++states[state];
  }
};

class GroupComparison {
 public:
  GroupComparison(CollectiveGroup& group, FlightVerdictCounts& verdicts,
                  std::vector<DumpFinding>& findings)
      : group_(group), verdicts_(verdicts), findings_(findings) {}

  void run() {
    if (group_.size == 1 || group_.views.empty()) return;
    align_windows();
    const GroupState state(group_);
    GroupHang hang(group_, state, last_common_);
    std::vector<std::size_t> cursors(group_.views.size());
    const std::int64_t first = first_common();
    for (std::size_t at = 0; at < cursors.size(); ++at) cursors[at] = group_.views[at].find(first);
    while (const auto number = next_number(cursors)) {
      if (compare_number(*number, cursors)) return;
      if (auto missing = hang.missing_at(*number)) {
        findings_.push_back(std::move(*missing));
        return;
      }
      pass(*number, cursors);
    }
    if (auto stuck = hang.stuck()) findings_.push_back(std::move(*stuck));
  }

 private:
  std::string words() const { return group_words(group_.name, group_.desc); }

  // Windows that count for themselves get the numbers of the longest one.
  void align_windows() {
    const auto longer = [](const GroupView& a, const GroupView& b) {
      return a.issued.size() < b.issued.size();
    };
    const GroupView& reference =
        *std::max_element(group_.views.begin(), group_.views.end(), longer);
    if (reference.dump->has_numbers) return;
    for (GroupView& view : group_.views)
      if (&view != &reference && !view.issued.empty())
        view.shift = window_shift(reference, view, group_.size).value_or(0);
  }

  // A ring buffer has dropped what came before, a window begins later.
  std::int64_t first_common() const {
    std::int64_t first = std::numeric_limits<std::int64_t>::min();
    for (const GroupView& view : group_.views)
      if (!view.issued.empty()) first = std::max(first, view.first());
    return first;
  }

  std::optional<std::int64_t> next_number(const std::vector<std::size_t>& cursors) const {
    std::optional<std::int64_t> next;
    for (std::size_t at = 0; at < cursors.size(); ++at) {
      const GroupView& view = group_.views[at];
      if (cursors[at] == view.issued.size()) continue;
      const std::int64_t number = view.number(cursors[at]);
      if (!next || number < *next) next = number;
    }
    return next;
  }

  void pass(std::int64_t number, std::vector<std::size_t>& cursors) const {
    for (std::size_t at = 0; at < cursors.size(); ++at) {
      const GroupView& view = group_.views[at];
      while (cursors[at] < view.issued.size() && view.number(cursors[at]) == number) ++cursors[at];
    }
  }

  // The operations of a number, in the order in which a batch lists them. True at a difference.
  bool compare_number(std::int64_t number, const std::vector<std::size_t>& cursors) {
    for (std::size_t place = 0;; ++place) {
      std::vector<std::size_t> there;
      for (std::size_t at = 0; at < cursors.size(); ++at) {
        const GroupView& view = group_.views[at];
        const std::size_t index = cursors[at] + place;
        if (index < view.issued.size() && view.number(index) == number) there.push_back(at);
      }
      if (there.empty()) return false;
      if (compare_place(number, place, cursors, there)) return true;
    }
  }

  bool compare_place(std::int64_t number, std::size_t place,
                     const std::vector<std::size_t>& cursors,
                     const std::vector<std::size_t>& there) {
    std::vector<Meaning> meanings;
    for (const std::size_t at : there) {
      const DumpedCollective& one = *group_.views[at].issued[cursors[at] + place];
      auto known = std::find_if(meanings.begin(), meanings.end(), [&](const Meaning& other) {
        return other.one->shape == one.shape ||
               match_shapes(*other.one->shape, *one.shape, group_.size).is_fine();
      });
      if (known == meanings.end()) known = meanings.insert(known, {.one = &one});
      known->add(at, one.state);
    }
    const auto most = [](const Meaning& a, const Meaning& b) {
      return a.views.size() < b.views.size();
    };
    const Meaning& reference = *std::max_element(meanings.begin(), meanings.end(), most);
    if (count_verdicts(number, reference, meanings)) return true;
    if (there.size() == group_.views.size())
      last_common_ = {group_.views[there.front()].dump, meanings.front().one};
    return check_sums(number, place, cursors, there);
  }

  // Counts each rank against the reference; true where one means something else.
  bool count_verdicts(std::int64_t number, const Meaning& reference,
                      const std::vector<Meaning>& meanings) {
    Meaning odd;
    FlightMatch difference;
    for (const Meaning& meaning : meanings) {
      const FlightMatch match =
          match_shapes(*reference.one->shape, *meaning.one->shape, group_.size);
      const bool is_reference = &meaning == &reference;
      count(match, meaning, is_reference ? reference.one->state : meaning.one->state,
            is_reference ? 1 : 0);
      if (match.is_fine() || meaning.views.size() == (is_reference ? 1U : 0U)) continue;
      if (odd.one == nullptr) {
        odd.one = meaning.one;
        difference = match;
      }
      odd.views.insert(odd.views.end(), meaning.views.begin(), meaning.views.end());
    }
    if (odd.one == nullptr) return false;
    report_mismatch(number, reference, odd, difference);
    return true;
  }

  // `known`: how many of the views are the reference itself.
  void count(const FlightMatch& match, const Meaning& meaning, OpState state, std::size_t known) {
    if (!match.is_fine()) {
      add_verdict(match.verdict, meaning.views.size() - known);
      return;
    }
    const std::size_t same = meaning.states.at(state);
    const bool is_undecided = is_uneven(meaning.one->shape->op);
    add_verdict(is_undecided ? FlightVerdict::undecided : FlightVerdict::fully_matched,
                same - known);
    add_verdict(FlightVerdict::collective_state_mismatch, meaning.views.size() - same);
  }

  void add_verdict(FlightVerdict verdict, std::size_t pairs) {
    if (pairs > 0) verdicts_[std::string(flight_verdict_name(verdict))] += pairs;
  }

  std::vector<std::int32_t> ranks_of(const std::vector<std::size_t>& views) const {
    std::vector<std::int32_t> ranks;
    for (const std::size_t at : views) ranks.push_back(group_.views[at].dump->rank);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  void report_mismatch(std::int64_t number, const Meaning& reference, const Meaning& odd,
                       const FlightMatch& match) {
    const std::string verdict(flight_verdict_name(match.verdict));
    const auto usual = ranks_of(reference.views);
    const auto strange = ranks_of(odd.views);
    Diagnosis found{.kind = "flight." + verdict};
    found.rule = std::string(kSameSequenceRule);
    found.last_common = last_common_.moment();
    found.gravity = group_.is_named() ? Gravity::defect : Gravity::hazard;
    found.ranks = strange;
    if (usual.size() == strange.size())  // no majority says who is right
      found.ranks.insert(found.ranks.end(), usual.begin(), usual.end());
    std::sort(found.ranks.begin(), found.ranks.end());
    found.collective = place_words(*odd.one);
    found.what =
        fmt::format("{}: number {} of {} is {} on {} and {} on {} ({})", verdict, number, words(),
                    with_article(operation_words(*reference.one)), rank_words(usual),
                    with_article(operation_words(*odd.one)), rank_words(strange), match.difference);
    if (!group_.is_named())
      found.what += "; the trace does not name the groups, so these may be two collectives";
    for (const Meaning* one : {&reference, &odd}) {
      const RankDump& dump = *group_.views[one->views.front()].dump;
      found.order.push_back(dump_moment(dump, *one->one, true));
      found.files.push_back(dump.path);
    }
    found.look_at =
        "what differs between the two ranks just before it: shapes, dtypes, branches on the data";
    add_skip(number, group_.views[reference.views.front()], group_.views[odd.views.front()], found);
    findings_.push_back({std::move(found), strange, {}});
  }

  // How long one rank's sequence continues as the other's does one number later.
  std::int64_t skipped_agreement(std::int64_t number, const GroupView& full,
                                 const GroupView& shorter) const {
    std::int64_t agreed = 0;
    for (std::int64_t at = number; at <= shorter.last(); ++at, ++agreed) {
      const DumpedCollective* mine = shorter.at(at);
      const DumpedCollective* theirs = full.at(at + 1);
      if (mine == nullptr || theirs == nullptr) break;
      if (!match_shapes(*theirs->shape, *mine->shape, group_.size).is_fine()) return 0;
    }
    return agreed;
  }

  void add_skip(std::int64_t number, const GroupView& reference, const GroupView& odd,
                Diagnosis& found) const {
    const std::int64_t if_odd = skipped_agreement(number, reference, odd);
    const std::int64_t if_reference = skipped_agreement(number, odd, reference);
    if (if_odd == 0 && if_reference == 0) return;
    const GroupView& shorter = if_odd >= if_reference ? odd : reference;
    const GroupView& full = if_odd >= if_reference ? reference : odd;
    found.what += fmt::format(
        "; from there on rank {} goes on as rank {} does one collective later: rank {} left out "
        "the {}",
        shorter.dump->rank, full.dump->rank, shorter.dump->rank, operation_words(*full.at(number)));
    found.look_at =
        fmt::format("why rank {} left it out: the branch must decide the same on every rank",
                    shorter.dump->rank);
  }

  // all_to_all: what all ranks send is what all ranks receive. Only known with every rank there.
  bool check_sums(std::int64_t number, std::size_t place, const std::vector<std::size_t>& cursors,
                  const std::vector<std::size_t>& there) {
    double sent = 0;
    double received = 0;
    const DumpedCollective* one = nullptr;
    for (const std::size_t at : there) {
      one = group_.views[at].issued[cursors[at] + place];
      if (one->shape->input_sizes.empty() || one->shape->output_sizes.empty()) return false;
      sent += elements_of(one->shape->input_sizes);
      received += elements_of(one->shape->output_sizes);
    }
    const bool is_everyone = group_.size > 0 && there.size() == group_.size;
    if (!is_uneven(one->shape->op) || !is_everyone || sent == received) return false;
    Diagnosis found{.kind = "flight.SIZE_OR_SYNTAX_MISMATCH"};
    found.rule = std::string(kSameSequenceRule);
    found.last_common = last_common_.moment();
    found.ranks = ranks_of(there);
    found.collective = place_words(*one);
    found.what = fmt::format(
        "SIZE_OR_SYNTAX_MISMATCH: in number {} of {}, {}, the ranks send {} elements in all and "
        "receive {}",
        number, words(), with_article(one->shape->op), sent, received);
    found.look_at = "the split sizes: what a rank sends to another is what that one receives";
    ++verdicts_["SIZE_OR_SYNTAX_MISMATCH"];
    findings_.push_back({std::move(found), {}, {}});
    return true;
  }

  CollectiveGroup& group_;
  FlightVerdictCounts& verdicts_;
  std::vector<DumpFinding>& findings_;
  CommonPlace last_common_;
};

}  // namespace

void compare_group(CollectiveGroup group, FlightVerdictCounts& verdicts,
                   std::vector<DumpFinding>& findings) {
  GroupComparison(group, verdicts, findings).run();
}

}  // namespace zeroproof

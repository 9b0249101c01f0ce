#include "props/replay/lane_divergence.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/replay/collective_rules.h"
#include "props/replay/moment.h"
#include "props/replay/rank_set.h"

namespace zeroproof {
namespace {

using Kind = LockstepExplanation::Kind;

constexpr std::size_t kSwappedShown = 4;

const LaneItem* front(const std::deque<LaneItem>& items) {
  return items.empty() ? nullptr : &items.front();
}

// One side of the divergence in words.
struct Party {
  const std::vector<std::int32_t>& ranks;
  const std::deque<LaneItem>& items;
  const DiagnosisMoment& last;

  std::string words() const { return rank_words(ranks); }
};

class Words {
 public:
  explicit Words(const LaneDivergence& at)
      : at_(at),
        odd_{at.odd, at.difference.mine, at.difference.mine_last},
        reference_{at.reference, at.difference.other, at.difference.other_last} {}

  Diagnosis run() {
    begin();
    switch (at_.explanation.kind) {
      case Kind::mine_left_out:
        left_out(odd_, reference_);
        break;
      case Kind::other_left_out:
        has_majority() ? extra() : left_out(reference_, odd_);
        break;
      case Kind::mine_ended:
        never_issued(odd_, reference_);
        break;
      case Kind::other_ended:
        has_majority() ? extra() : never_issued(reference_, odd_);
        break;
      case Kind::swapped:
        swapped();
        break;
      case Kind::unlike:
        unlike();
        break;
    }
    return std::move(found_);
  }

 private:
  // With two ranks alone, one that has more is taken for right: leaving out is the likelier
  // mistake.
  bool has_majority() const { return at_.reference.size() > at_.odd.size(); }

  void begin() {
    found_.gravity = Gravity::defect;
    found_.ranks = at_.odd;
    found_.files = {at_.reference_path};
    found_.files.insert(found_.files.end(), at_.odd_paths.begin(), at_.odd_paths.end());
    found_.rule =
        "P45 collective.same_sequence_on_all_ranks: all ranks issue the same sequence of "
        "(operation, group, dtype, size)";
    if (const auto& before = at_.difference.other_before) {
      found_.last_common = before->moment;
      found_.last_common->text =
          fmt::format("{}, number {} of group {}", before->words(), before->number, at_.title);
    }
    for (const auto* before : {&at_.difference.other_before, &at_.difference.mine_before})
      if (*before) found_.order.push_back((*before)->moment);
    for (const Party* party : {&reference_, &odd_}) add_front(*party);
  }

  void add_front(const Party& party) {
    const LaneItem* item = front(party.items);
    if (item == nullptr) return;
    DiagnosisMoment bad = item->moment;
    bad.is_bad = true;
    if (!item->place.empty()) bad.text += ", " + item->place;
    found_.order.push_back(std::move(bad));
  }

  void add_last(const Party& party) {
    DiagnosisMoment last = party.last;
    if (last.text.empty()) return;
    last.text = "the last thing on this rank: " + last.text;
    found_.order.push_back(std::move(last));
  }

  void name(const LaneItem& item) {
    found_.parameter = item.parameter;
    found_.collective = fmt::format("{} number {} of group {}", item.op, item.number, at_.title);
  }

  void left_out(const Party& without, const Party& with) {
    const LaneItem& missed = with.items.front();
    found_.kind = "collective.missing";
    found_.ranks = without.ranks;
    name(missed);
    found_.what =
        fmt::format("{} left out the {} that {} issued as number {} of group {}", without.words(),
                    missed.words(), with.words(), missed.number, at_.title);
    if (const LaneItem* next = front(without.items))
      found_.what += fmt::format("; {} went on with the {}, which met the {} of {}",
                                 without.ranks.size() == 1 ? "it" : "they", next->words(),
                                 missed.words(), with.words());
    found_.look_at = fmt::format(
        "the branch that decides on {} whether {} takes part: it must decide the same on every "
        "rank{}",
        without.words(), missed.parameter.empty() ? "this call" : missed.parameter,
        missed.place.empty() ? "" : fmt::format(" ({})", missed.place));
  }

  void never_issued(const Party& without, const Party& with) {
    const LaneItem& missed = with.items.front();
    found_.kind = "collective.missing";
    found_.ranks = without.ranks;
    name(missed);
    found_.what =
        fmt::format("{} never issued the {} that {} issued as number {} of group {}",
                    without.words(), missed.words(), with.words(), missed.number, at_.title);
    add_last(without);
    found_.look_at = fmt::format(
        "what {} did after {}: an exception, an early end of its data, a branch that the others "
        "did not take",
        without.words(), found_.last_common ? found_.last_common->text : "it began");
  }

  void extra() {
    const LaneItem& more = odd_.items.front();
    found_.kind = "collective.extra";
    name(more);
    found_.what =
        fmt::format("{} issued {} as number {} of group {} that {} did not issue", odd_.words(),
                    with_article(more.words()), more.number, at_.title, reference_.words());
    found_.look_at = fmt::format(
        "what only {} does before it: logging, evaluation, a branch on the data", odd_.words());
  }

  void swapped() {
    const LaneItem& mine = odd_.items.front();
    found_.kind = "collective.order_differs";
    name(mine);
    found_.what = fmt::format(
        "the ranks issue the same {} collectives of group {} in another order, from number {} on: "
        "{} {}; {} {}",
        at_.explanation.length, at_.title, mine.number, reference_.words(), sequence(reference_),
        odd_.words(), sequence(odd_));
    const bool has_same_sizes =
        mine.op == reference_.items.front().op && mine.bytes == reference_.items.front().bytes;
    if (has_same_sizes)
      found_.what += "; sizes agree, so no rank hangs and values of different parameters are mixed";
    found_.look_at =
        "what decides the order: callbacks of futures (communication hooks), threads, sets and "
        "dicts. One thread must issue the collectives of a group, in one order";
  }

  std::string sequence(const Party& party) const {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < at_.explanation.length && at < party.items.size(); ++at)
      words.push_back(party.items[at].words());
    return listed(words, kSwappedShown);
  }

  void unlike() {
    const LaneItem& mine = odd_.items.front();
    const LaneItem& theirs = reference_.items.front();
    const CollectiveRule& rule = collective_rule(mine.op);
    const bool is_same_op = mine.op == theirs.op;
    const bool is_same_size = !rule.has_same_size || mine.bytes == theirs.bytes;
    const bool is_same_root = mine.root < 0 || theirs.root < 0 || mine.root == theirs.root;
    found_.kind = !is_same_op     ? "collective.operation_differs"
                  : !is_same_size ? "collective.size_differs"
                  : !is_same_root ? "collective.root_differs"
                                  : "collective.parameter_differs";
    name(mine);
    found_.what = fmt::format("number {} of group {} is {} on {} and {} on {}", mine.number,
                              at_.title, with_article(theirs.words()), reference_.words(),
                              with_article(mine.words()), odd_.words());
    found_.look_at =
        is_same_op && is_same_size && is_same_root
            ? "sizes agree, so no rank hangs: the ranks mix values of different parameters. Look "
              "at what decides the order of modules and parameters (random layer skips, sets, "
              "dicts, branches on the data)"
            : "inputs, shapes and branches that differ between the ranks just before it";
  }

  const LaneDivergence& at_;
  Party odd_;
  Party reference_;
  Diagnosis found_;
};

}  // namespace

bool LaneDivergence::is_end() const {
  return explanation.kind == Kind::mine_ended || explanation.kind == Kind::other_ended;
}

std::uint64_t LaneDivergence::age() const {
  const LaneItem* mine = front(difference.mine);
  const LaneItem* other = front(difference.other);
  if (mine == nullptr && other == nullptr) return 0;
  if (mine == nullptr || other == nullptr) return (mine == nullptr ? other : mine)->collectives;
  return std::min(mine->collectives, other->collectives);
}

Diagnosis diagnosis_of_divergence(const LaneDivergence& at) {
  return Words(at).run();
}

}  // namespace zeroproof

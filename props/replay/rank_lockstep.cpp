#include "props/replay/rank_lockstep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>

#include "props/replay/moment.h"
#include "props/replay/rank_cursor.h"

namespace zeroproof {
namespace {

constexpr std::size_t kLookAhead = 32;
constexpr std::size_t kQueueMax = 1 << 16;

using Queue = std::deque<IssuedCollective>;

// How many of `mine` from `skipped` on agree with `other`.
std::size_t agreement(const Queue& mine, std::size_t skipped, const Queue& other) {
  std::size_t agreed = 0;
  while (skipped + agreed < mine.size() && agreed < other.size() &&
         mine[skipped + agreed].is_same(other[agreed]))
    ++agreed;
  return agreed;
}

bool has_member(const std::string& members, std::int32_t rank) {
  if (members.find_first_not_of("0123456789,") != std::string::npos) return true;
  return fmt::format(",{},", members).find(fmt::format(",{},", rank)) != std::string::npos;
}

class Lockstep {
 public:
  explicit Lockstep(const std::vector<RankFile>& files) : files_(files) {}

  std::optional<Diagnosis> run() {
    for (const RankFile& file : files_) {
      auto cursor = RankCursor::open(file.path);
      if (!cursor) return std::nullopt;
      cursors_.push_back(std::move(*cursor));
      queues_.emplace_back();
    }
    for (bool is_moving = true; is_moving;) {
      is_moving = false;
      for (std::size_t rank = 0; rank < cursors_.size(); ++rank)
        is_moving = pull(rank) || is_moving;
      if (auto found = compare_hooks()) hook_difference_ = std::move(found);
      if (auto found = compare_fronts()) return found;
      if (is_crowded()) break;
    }
    if (auto found = leftover()) return found;
    return std::move(hook_difference_);
  }

 private:
  bool pull(std::size_t rank) {
    auto issued = cursors_[rank].next();
    if (!issued) return false;
    const std::string key = issued->members;
    queues_[rank][key].push_back(std::move(*issued));
    return true;
  }

  bool is_crowded() const {
    return std::any_of(queues_.begin(), queues_.end(), [](const auto& by_group) {
      return std::any_of(by_group.begin(), by_group.end(),
                         [](const auto& entry) { return entry.second.size() > kQueueMax; });
    });
  }

  std::vector<std::string> groups() const {
    std::vector<std::string> keys;
    for (const auto& by_group : queues_)
      for (const auto& [key, queue] : by_group)
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    return keys;
  }

  std::vector<std::size_t> members(const std::string& group) const {
    std::vector<std::size_t> found;
    for (std::size_t at = 0; at < files_.size(); ++at)
      if (has_member(group, files_[at].story->rank)) found.push_back(at);
    return found;
  }

  std::optional<Diagnosis> compare_fronts() {
    for (const std::string& group : groups()) {
      const std::vector<std::size_t> ranks = members(group);
      while (ranks.size() > 1 && std::all_of(ranks.begin(), ranks.end(), [&](std::size_t rank) {
               return !queues_[rank][group].empty();
             })) {
        const IssuedCollective& first = queues_[ranks[0]][group].front();
        for (const std::size_t rank : ranks)
          if (!first.is_same(queues_[rank][group].front())) return divergence(group, ranks);
        last_common_ = common_moment(first);
        for (const std::size_t rank : ranks) {
          matched_[rank] = queues_[rank][group].front().moment;
          queues_[rank][group].pop_front();
        }
        ++count_[group];
      }
    }
    return std::nullopt;
  }

  DiagnosisMoment common_moment(const IssuedCollective& one) const {
    DiagnosisMoment moment = one.moment;
    moment.text = fmt::format("{}, number {} of group {}", one.words(), one.number, one.group);
    return moment;
  }

  // The rank whose queue does not fit the others'. With two ranks: the one whose continuation is
  // explained by leaving the other's collective out.
  std::optional<Diagnosis> divergence(const std::string& group,
                                      const std::vector<std::size_t>& ranks) {
    for (std::size_t round = 0; round < kLookAhead; ++round)
      for (const std::size_t rank : ranks) pull(rank);
    const auto [odd, reference] = odd_one(group, ranks);
    const Queue& mine = queues_[odd][group];
    const Queue& theirs = queues_[reference][group];
    const std::size_t if_skipped = agreement(theirs, 1, mine);
    const std::size_t if_extra = agreement(mine, 1, theirs);
    if (if_skipped > 0 && if_skipped >= if_extra) return skipped(odd, reference, group);
    if (if_extra > 0)
      return ranks.size() > 2 ? in_excess(odd, reference, group) : skipped(reference, odd, group);
    return mismatch(odd, reference, group);
  }

  // The odd rank and one of the majority.
  std::pair<std::size_t, std::size_t> odd_one(const std::string& group,
                                              const std::vector<std::size_t>& ranks) {
    std::size_t best_votes = 0;
    std::size_t reference = ranks.front();
    for (const std::size_t candidate : ranks) {
      const auto votes = static_cast<std::size_t>(
          std::count_if(ranks.begin(), ranks.end(), [&](std::size_t other) {
            return queues_[candidate][group].front().is_same(queues_[other][group].front());
          }));
      if (votes > best_votes) {
        best_votes = votes;
        reference = candidate;
      }
    }
    const auto odd = std::find_if(ranks.begin(), ranks.end(), [&](std::size_t rank) {
      return !queues_[reference][group].front().is_same(queues_[rank][group].front());
    });
    return {*odd, reference};
  }

  std::int32_t rank_of(std::size_t at) const { return files_[at].story->rank; }

  Diagnosis base(std::size_t odd, std::size_t reference, std::string kind) {
    Diagnosis found{.kind = std::move(kind), .ranks = {rank_of(odd)}};
    found.files = {files_[reference].path, files_[odd].path};
    found.rule =
        "P45 collective.same_sequence_on_all_ranks: all ranks issue the same sequence of "
        "(operation, group, dtype, size)";
    found.last_common = last_common_;
    for (const std::size_t at : {reference, odd})
      if (matched_.contains(at)) found.order.push_back(matched_.at(at));
    return found;
  }

  static void name_collective(const IssuedCollective& one, Diagnosis& found) {
    found.parameter = one.parameter;
    found.collective = fmt::format("{} number {} of group {}", one.op, one.number, one.group);
  }

  void add_waits(Diagnosis& found) {
    for (std::size_t at = 0; at < files_.size(); ++at) {
      const TraceStory& story = *files_[at].story;
      if (story.open_collectives.empty()) continue;
      DiagnosisWait wait{.rank = rank_of(at), .text = story.open_collectives.front().text};
      for (std::size_t other = 0; other < files_.size(); ++other)
        if (other != at && !is_waiting_with(story, *files_[other].story))
          wait.for_ranks.push_back(rank_of(other));
      found.waits.push_back(std::move(wait));
      DiagnosisMoment moment{rank_of(at), story.open_collectives.front().lc,
                             story.open_collectives.front().text + " never completes", true};
      found.order.push_back(std::move(moment));
    }
    for (const RankFile& file : files_) {
      const TraceStory& story = *file.story;
      if (!story.exceptions.empty())
        found.order.push_back(
            {story.rank, story.exceptions.back().lc,
             fmt::format("{}: {}", story.exceptions.back().type, story.exceptions.back().message),
             false});
      else if (!story.is_complete && !story.last.empty())
        found.order.push_back({story.rank, story.last.back().lc, "the file ends here", false});
    }
    found.gravity = Gravity::defect;
  }

  static bool is_waiting_with(const TraceStory& one, const TraceStory& other) {
    return !other.open_collectives.empty() &&
           one.open_collectives.front().text == other.open_collectives.front().text;
  }

  void add_fronts(Diagnosis& found, std::size_t odd, std::size_t reference,
                  const std::string& group) {
    for (const std::size_t at : {reference, odd}) {
      const Queue& queue = queues_[at][group];
      if (queue.empty()) continue;
      DiagnosisMoment bad = queue.front().moment;
      bad.is_bad = true;
      if (!queue.front().place.empty()) bad.text += ", " + queue.front().place;
      found.order.push_back(std::move(bad));
    }
  }

  // `odd` left out what `reference` has at the front.
  Diagnosis skipped(std::size_t odd, std::size_t reference, const std::string& group) {
    const IssuedCollective& missed = queues_[reference][group].front();
    Diagnosis found = base(odd, reference, "collective.missing");
    found.what =
        fmt::format("rank {} left out the {} that rank {} issued as number {} of group {}",
                    rank_of(odd), missed.words(), rank_of(reference), missed.number, missed.group);
    name_collective(missed, found);
    add_fronts(found, odd, reference, group);
    if (!queues_[odd][group].empty())
      found.what +=
          fmt::format("; it went on with the {}, which met rank {}'s {}",
                      queues_[odd][group].front().words(), rank_of(reference), missed.words());
    add_waits(found);
    found.look_at = fmt::format(
        "the branch that decides on rank {} whether {} takes part: it must decide the same on "
        "every "
        "rank{}",
        rank_of(odd), missed.parameter.empty() ? "this call" : missed.parameter,
        missed.place.empty() ? "" : fmt::format(" ({})", missed.place));
    return found;
  }

  Diagnosis in_excess(std::size_t odd, std::size_t reference, const std::string& group) {
    const IssuedCollective& extra = queues_[odd][group].front();
    Diagnosis found = base(odd, reference, "collective.extra");
    found.what = fmt::format("rank {} issued {} as number {} of group {} that no other rank has",
                             rank_of(odd), with_article(extra.words()), extra.number, extra.group);
    name_collective(extra, found);
    add_fronts(found, odd, reference, group);
    add_waits(found);
    found.look_at = "what only this rank does before it: logging, evaluation, a branch on the data";
    return found;
  }

  Diagnosis mismatch(std::size_t odd, std::size_t reference, const std::string& group) {
    const IssuedCollective& mine = queues_[odd][group].front();
    const IssuedCollective& theirs = queues_[reference][group].front();
    const char* what = mine.op != theirs.op         ? "collective.operation_differs"
                       : mine.bytes != theirs.bytes ? "collective.size_differs"
                                                    : "collective.parameter_differs";
    Diagnosis found = base(odd, reference, what);
    found.what = fmt::format("number {} of group {} is {} on rank {} and {} on rank {}",
                             mine.number, mine.group, with_article(theirs.words()),
                             rank_of(reference), with_article(mine.words()), rank_of(odd));
    name_collective(mine, found);
    add_fronts(found, odd, reference, group);
    add_waits(found);
    found.look_at =
        mine.op == theirs.op && mine.bytes == theirs.bytes
            ? "sizes agree, so nothing hangs: the ranks add up gradients of different parameters. "
              "Look at what orders the parameters (sets, dicts, data-dependent branches)"
            : "inputs, shapes and branches that differ between the ranks just before it";
    return found;
  }

  // One side has ended; what the other still has at the front was never joined.
  std::optional<Diagnosis> leftover() {
    for (const std::string& group : groups()) {
      const std::vector<std::size_t> ranks = members(group);
      std::optional<std::size_t> waiting;
      std::optional<std::size_t> ended;
      for (const std::size_t rank : ranks) (queues_[rank][group].empty() ? ended : waiting) = rank;
      if (!waiting || !ended) continue;
      const bool is_excused =
          !files_[*ended].story->is_complete && files_[*waiting].story->open_collectives.empty();
      if (is_excused) continue;  // the recording was merely cut there
      return never_joined(*ended, *waiting, group);
    }
    return std::nullopt;
  }

  Diagnosis never_joined(std::size_t odd, std::size_t reference, const std::string& group) {
    const IssuedCollective& missed = queues_[reference][group].front();
    Diagnosis found = base(odd, reference, "collective.missing");
    found.what =
        fmt::format("rank {} never issued the {} that rank {} issued as number {} of group {}",
                    rank_of(odd), missed.words(), rank_of(reference), missed.number, missed.group);
    name_collective(missed, found);
    add_fronts(found, odd, reference, group);
    DiagnosisMoment last = cursors_[odd].last();
    last.text = "the last thing on this rank: " + last.text;
    found.order.push_back(std::move(last));
    add_waits(found);
    found.look_at = fmt::format(
        "what rank {} did after {}: an exception, an early end of its data, a "
        "branch that the others did not take",
        rank_of(odd), last_common_ ? last_common_->text : "it began");
    return found;
  }

  // The order of gradient hooks, which no collective has contradicted so far.
  std::optional<Diagnosis> compare_hooks() {
    for (std::size_t at = 0; at < cursors_.size(); ++at)
      for (DiagnosisMoment& hook : cursors_[at].take_hooks())
        if (!hook_difference_) hooks_[at].push_back(std::move(hook));
    if (hook_difference_) return std::nullopt;
    for (std::size_t at = 1; at < cursors_.size(); ++at) {
      auto& mine = hooks_[at];
      auto& theirs = hooks_[0];
      std::size_t same = 0;
      while (same < mine.size() && same < theirs.size() && mine[same].text == theirs[same].text)
        ++same;
      if (same < mine.size() && same < theirs.size())
        return hook_order(at, theirs[same], mine[same]);
    }
    drop_common_hooks();
    return std::nullopt;
  }

  void drop_common_hooks() {
    std::size_t shortest = kQueueMax;
    for (std::size_t at = 0; at < cursors_.size(); ++at)
      shortest = std::min(shortest, hooks_[at].size());
    for (std::size_t at = 0; at < cursors_.size(); ++at)
      hooks_[at].erase(hooks_[at].begin(),
                       hooks_[at].begin() + static_cast<std::ptrdiff_t>(shortest));
  }

  Diagnosis hook_order(std::size_t at, const DiagnosisMoment& theirs, const DiagnosisMoment& mine) {
    Diagnosis found{
        .kind = "hooks.order_differs", .gravity = Gravity::hazard, .ranks = {rank_of(at)}};
    found.what = fmt::format(
        "gradients form in another order: after the same beginning rank {} has {}, "
        "rank {} has {}",
        rank_of(0), theirs.text, rank_of(at), mine.text);
    found.files = {files_[0].path, files_[at].path};
    found.order = {theirs, mine};
    found.order.back().is_bad = true;
    for (DiagnosisMoment& moment : found.order) moment.text = "gradient hook of " + moment.text;
    found.parameter = mine.text;
    found.rule =
        "bucketed reductions pack gradients in the order of their hooks, and so need the same "
        "order on all ranks (bug_catalogue E01)";
    found.look_at = "modules that are used in another order, or not at all, on one of the ranks";
    found.last_common = last_common_;
    return found;
  }

  const std::vector<RankFile>& files_;
  std::vector<RankCursor> cursors_;
  std::vector<std::map<std::string, Queue>> queues_;  // by rank, then group
  std::map<std::size_t, std::deque<DiagnosisMoment>> hooks_;
  std::map<std::size_t, DiagnosisMoment> matched_;
  std::map<std::string, std::uint64_t> count_;
  std::optional<DiagnosisMoment> last_common_;
  std::optional<Diagnosis> hook_difference_;
};

}  // namespace

std::optional<Diagnosis> first_divergence(const std::vector<RankFile>& ranks) {
  return Lockstep(ranks).run();
}

}  // namespace zeroproof

#include "props/watch/run_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/replay/collective_rules.h"
#include "props/replay/diagnose.h"
#include "props/replay/rank_set.h"

namespace zeroproof {
namespace {

const ReplayOptions& comparison_options() {
  static const ReplayOptions kOptions{.has_story = true};
  return kOptions;
}

bool is_of_the_run(const Diagnosis& found) {
  return found.kind.starts_with("collective.") || found.kind.starts_with("message.");
}

// "all_reduce" of "all_reduce number 4 of group world (64 bytes)".
std::string_view operation_of(const DiagnosisWait& wait) {
  return std::string_view(wait.text).substr(0, wait.text.find(' '));
}

Diagnosis stuck_together(const DiagnosisWait& wait) {
  Diagnosis found{.kind = "collective.stuck_together", .ranks = wait.ranks};
  found.what = fmt::format("all ranks of the group are in {}, and it does not complete", wait.text);
  found.collective = wait.text;
  found.waits = {wait};
  found.rule = "a collective that all ranks of its group have issued completes";
  found.look_at =
      "the network between these ranks and their devices: the order of the program is the same on "
      "all of them";
  return found;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

std::string_view watch_kind_name(WatchNews::Kind kind) {
  constexpr std::string_view kNames[] = {"began",   "ended",   "died",       "waits",
                                         "goes_on", "finding", "unreadable", "over"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<WatchNews> RunWatch::judge(const std::vector<WatchedRank*>& ranks,
                                       std::int64_t now_ns) {
  out_.clear();
  if (is_over_) return {};
  now_ns_ = now_ns;
  const bool has_news =
      ranks.size() != ranks_.size() ||
      std::any_of(ranks.begin(), ranks.end(), [](const auto* rank) { return rank->has_news; });
  if (ranks.size() != ranks_.size()) parts_.clear();
  ranks_ = ranks;
  report_ranks();
  if (has_news) {
    take_parts();
    find_waits();
    report_certain();
  }
  if (has_ended())
    report_end();
  else
    report_waits();
  return std::move(out_);
}

bool RunWatch::has_defect() const {
  return has_defect_ || std::any_of(waiting_.begin(), waiting_.end(),
                                    [](const auto& entry) { return entry.second.is_hang; });
}

WatchNews RunWatch::news_of(WatchNews::Kind kind) const {
  WatchNews news{.kind = kind, .at_ns = now_ns_};
  news.run = run_word(ranks_.front()->follower.facts());
  news.world = ranks_.front()->follower.facts().world;
  return news;
}

void RunWatch::report_ranks() {
  WatchNews began = news_of(WatchNews::Kind::began);
  WatchNews ended = news_of(WatchNews::Kind::ended);
  WatchNews died = news_of(WatchNews::Kind::died);
  for (WatchedRank* rank : ranks_) {
    const std::int32_t number = rank->follower.rank();
    if (!std::exchange(rank->is_reported, true)) began.ranks.push_back(number);
    if (rank->is_end_reported || !rank->is_over) continue;
    rank->is_end_reported = true;
    rank->has_news = true;
    (rank->follower.has_ended() ? ended : died).ranks.push_back(number);
  }
  for (WatchNews* news : {&began, &ended, &died})
    if (!news->ranks.empty()) out_.push_back(std::move(*news));
}

void RunWatch::take_parts() {
  const bool is_rebuilt = parts_.size() != ranks_.size();
  std::vector<TraceReplayer::SoFar> parts;
  for (std::size_t at = 0; at < ranks_.size(); ++at) {
    WatchedRank& rank = *ranks_[at];
    parts.push_back(is_rebuilt || rank.has_news ? rank.follower.so_far(rank.path, rank.is_over)
                                                : std::move(parts_[at]));
    rank.has_news = false;
  }
  parts_ = std::move(parts);
}

void RunWatch::find_waits() {
  waits_.clear();
  MemberTable table = make_member_table();
  std::vector<RunMember> members;
  for (std::size_t at = 0; at < ranks_.size(); ++at) {
    parts_[at].digest.share_members(table);
    const std::int32_t rank = ranks_[at]->follower.rank();
    if (!members.empty() && members.back().rank == rank) return;  // two recordings of one rank
    members.push_back({&parts_[at].digest, rank, ranks_[at]->path});
  }
  if (members.size() < 2) return;
  const LaneGroups lanes = lane_groups(members);
  waits_ = RankWaits(members, lanes.groups).all();
  const bool is_whole = std::cmp_equal(members.size(), ranks_.front()->follower.facts().world);
  has_parted_ = has_parted_ || (is_whole && parting_.is_settled(lanes));
}

bool RunWatch::has_candidates() const {
  return has_parted_ ||
         std::any_of(parts_.begin(), parts_.end(), [](const TraceReplayer::SoFar& part) {
           const TraceStory& story = *part.trace.story;
           return part.trace.fault || !story.found.empty() || !story.exceptions.empty() ||
                  (part.trace.properties && part.trace.properties->is_falsified());
         });
}

// What a diagnosis of now depends on.
std::string RunWatch::signature() const {
  std::string words = has_parted_ ? "parted" : "";
  for (const TraceReplayer::SoFar& part : parts_) {
    words += fmt::format(";{}", part.trace.fault.has_value());
    for (const Diagnosis& found : part.trace.story->found) words += "," + found.kind;
    for (const SeenException& seen : part.trace.story->exceptions)
      words += fmt::format(",{}", seen.lc);
    if (!part.trace.properties) continue;
    for (const Finding& finding : part.trace.properties->falsified)
      words += fmt::format(",{}", finding.property->number);
  }
  return words;
}

RunWatch::Answer RunWatch::diagnosed(const std::vector<TraceReplayer::SoFar>& parts,
                                     bool compares_ranks) const {
  std::map<std::string, std::string> names;  // of the files that are read, to those of the user
  Replay replay(comparison_options());
  ReplayReport report;
  for (std::size_t at = 0; at < parts.size(); ++at) {
    TraceReplay trace = parts[at].trace;
    trace.path = snapshot_(*ranks_[at]);
    names[trace.path] = ranks_[at]->path;
    if (compares_ranks)
      replay.add(std::move(trace), ranks_[at]->follower.facts(), parts[at].digest);
    else
      report.traces.push_back(std::move(trace));
  }
  if (compares_ranks) report = replay.finish();
  Answer answer{.found = diagnose(report)};
  for (const RunComparison& run : report.runs)
    answer.ends_apart = answer.ends_apart || run.ends_apart;
  for (Diagnosis& one : answer.found)
    for (const auto& [read, named] : names) {
      for (std::string& file : one.files)
        if (file == read) file = named;
      replace_all(one.what, read, named);
    }
  return answer;
}

void RunWatch::report_finding(const Diagnosis& found, WatchNews as) {
  const std::string key = fmt::format("{} {} {}", found.kind,
                                      rank_set(found.ranks, found.ranks.size()), found.collective);
  if (!reported_.insert(key).second) return;
  as.kind = WatchNews::Kind::finding;
  as.at_ns = now_ns_;
  as.ranks = found.ranks;
  as.answer = found;
  out_.push_back(std::move(as));
}

void RunWatch::report_certain() {
  const std::string now = signature();
  if (now == judged_ || !has_candidates()) return;
  judged_ = now;
  const Answer answer = diagnosed(parts_, has_parted_);
  std::vector<const TraceReplay*> traces;
  for (const TraceReplayer::SoFar& part : parts_) traces.push_back(&part.trace);
  for (const Diagnosis& found : answer.found) {
    if (!is_certain(found, traces) || (is_of_the_run(found) && answer.ends_apart)) continue;
    has_defect_ = true;
    report_finding(found, news_of(WatchNews::Kind::finding));
  }
}

bool RunWatch::is_on_device() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return part.digest.has_early_completions(); });
}

// How long no event came from those that wait and those that they wait for; nullopt where one of
// them records no event at present.
std::optional<std::int64_t> RunWatch::quiet_ns(const DiagnosisWait& wait) const {
  std::int64_t last_ns = 0;
  for (const WatchedRank* rank : ranks_) {
    const auto is_in = [&](const auto& some) {
      return std::find(some.begin(), some.end(), rank->follower.rank()) != some.end();
    };
    if (!is_in(wait.ranks) && !is_in(wait.for_ranks)) continue;
    if (rank->is_paused) return std::nullopt;
    last_ns = std::max(last_ns, rank->last_event_ns);
  }
  return now_ns_ - last_ns;
}

void RunWatch::report_waits() {
  std::map<std::string, Waiting> now;
  for (const DiagnosisWait& wait : waits_) {
    const auto known = waiting_.find(wait.text);
    Waiting& place = now[wait.text];
    if (known != waiting_.end()) place = known->second;
    place.wait = wait;
  }
  for (auto& [words, place] : waiting_) {
    if (now.contains(words) || !place.is_reported) continue;
    WatchNews news = news_of(WatchNews::Kind::goes_on);
    news.ranks = place.wait.ranks;
    news.wait = place.wait;
    news.is_hang = place.is_hang;
    out_.push_back(std::move(news));
  }
  waiting_ = std::move(now);
  for (auto& [words, place] : waiting_) report_wait(place);
}

// On a device a work that is done looks open until the next event: that all ranks are in it says
// little there.
void RunWatch::report_wait(Waiting& place) {
  const auto quiet = quiet_ns(place.wait);
  const bool is_doubtful = place.wait.for_ranks.empty() && is_on_device();
  const std::int64_t reported_after = is_doubtful ? options_.hang_after_ns : options_.wait_after_ns;
  if (!quiet || *quiet < std::min(reported_after, options_.hang_after_ns)) return;
  WatchNews news = news_of(WatchNews::Kind::waits);
  news.ranks = place.wait.ranks;
  news.wait = place.wait;
  news.absent = places(place.wait.for_ranks);
  news.quiet_ns = *quiet;
  if (*quiet >= options_.hang_after_ns && !std::exchange(place.is_judged, true))
    judge_hang(place, news);
  if (!std::exchange(place.is_reported, true) && !place.is_hang) out_.push_back(std::move(news));
}

void RunWatch::judge_hang(Waiting& place, const WatchNews& seen) {
  WatchNews as = seen;
  as.is_hang = true;
  bool is_explained = false;
  for (const Diagnosis& found : diagnosed(parts_, true).found) {
    if (!is_of_the_run(found) || found.gravity != Gravity::defect) continue;
    is_explained = true;
    report_finding(found, as);
  }
  const bool is_joined =
      place.wait.for_ranks.empty() && collective_rule(operation_of(place.wait)).joins_all_ranks;
  if (!is_explained && is_joined && !is_on_device()) {
    is_explained = true;
    report_finding(stuck_together(place.wait), as);
  }
  place.is_hang = is_explained;
  place.is_reported = place.is_reported || is_explained;
}

std::vector<WatchPlace> RunWatch::places(const std::vector<std::int32_t>& of) const {
  std::vector<WatchPlace> all;
  for (std::size_t at = 0; at < ranks_.size(); ++at) {
    const std::int32_t rank = ranks_[at]->follower.rank();
    if (std::find(of.begin(), of.end(), rank) == of.end()) continue;
    WatchPlace place{.rank = rank,
                     .quiet_ns = now_ns_ - ranks_[at]->last_event_ns,
                     .is_over = ranks_[at]->is_over};
    const auto& last = parts_[at].trace.story->last;
    if (!last.empty()) place.last = last.back();
    all.push_back(std::move(place));
  }
  return all;
}

// All ranks of the world, or all that there are and no other in sight.
bool RunWatch::has_ended() const {
  std::int64_t last_ns = 0;
  for (const WatchedRank* rank : ranks_) {
    if (!rank->is_over) return false;
    last_ns = std::max(last_ns, rank->last_event_ns);
  }
  const bool is_whole =
      std::cmp_greater_equal(ranks_.size(), ranks_.front()->follower.facts().world);
  return is_whole || now_ns_ - last_ns >= options_.hang_after_ns;
}

// The whole files: as `replay` says it.
void RunWatch::report_end() {
  is_over_ = true;
  waiting_.clear();
  std::vector<TraceReplayer::SoFar> parts;
  for (WatchedRank* rank : ranks_) parts.push_back(rank->follower.finish(rank->path));
  for (const Diagnosis& found : diagnosed(parts, true).found) {
    has_defect_ = has_defect_ || found.gravity == Gravity::defect;
    report_finding(found, news_of(WatchNews::Kind::finding));
  }
  WatchNews over = news_of(WatchNews::Kind::over);
  for (const WatchedRank* rank : ranks_) over.ranks.push_back(rank->follower.rank());
  out_.push_back(std::move(over));
}

}  // namespace zeroproof

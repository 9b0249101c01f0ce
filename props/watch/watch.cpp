#include "props/watch/watch.h"

#include <algorithm>
#include <utility>

namespace zeroproof {

Watch::Watch(const WatchOptions& options, TraceSnapshot snapshot)
    : options_(options), snapshot_(std::move(snapshot)), levels_{.has_story = true} {}

void Watch::add(const std::string& name, RankStream stream) {
  ranks_.emplace(name, Entry{std::move(stream), std::make_unique<WatchedRank>(levels_)});
}

void Watch::set_dead(const std::string& name) {
  ranks_.at(name).is_dead = true;
}

void Watch::read(Entry& entry, std::int64_t now_ns) {
  WatchedRank& rank = *entry.rank;
  if (rank.is_over) return;
  const RankStream::News news = entry.stream.poll();
  if (news.has_restarted) {
    const bool was_reported = rank.is_reported;
    entry.rank = std::make_unique<WatchedRank>(levels_);
    entry.rank->is_reported = was_reported;
  }
  WatchedRank& now = *entry.rank;
  now.path = entry.stream.path();
  for (const std::string& line : news.lines) now.follower.add(line);
  now.is_paused = entry.stream.is_paused();
  now.is_over = now.follower.has_ended();
  if (!news.lines.empty()) {
    now.has_news = true;
    now.last_event_ns = now_ns;
    return;
  }
  // A file without a spool may be written by any program, so only its end record ends it.
  now.is_over = now.is_over || entry.stream.is_owner_done() || entry.is_dead;
}

void Watch::report_fault(Entry& entry, std::int64_t now_ns, std::vector<WatchNews>& out) {
  const auto& fault = entry.rank->follower.fault();
  if (!fault || std::exchange(entry.is_fault_reported, true)) return;
  has_fault_ = true;
  WatchNews news{.kind = WatchNews::Kind::unreadable, .at_ns = now_ns};
  news.text = entry.rank->path + ": " + fault->text;
  out.push_back(std::move(news));
}

std::vector<WatchNews> Watch::tick(std::int64_t now_ns) {
  std::vector<WatchNews> out;
  std::map<std::string, std::vector<WatchedRank*>> by_run;
  for (auto& [name, entry] : ranks_) {
    read(entry, now_ns);
    report_fault(entry, now_ns, out);
    if (entry.rank->follower.has_begun())
      by_run[run_word(entry.rank->follower.facts())].push_back(entry.rank.get());
  }
  for (auto& [word, ranks] : by_run) {
    std::stable_sort(ranks.begin(), ranks.end(), [](const auto* a, const auto* b) {
      return a->follower.rank() < b->follower.rank();
    });
    auto run = runs_.find(word);
    if (run == runs_.end()) run = runs_.try_emplace(word, options_, snapshot_).first;
    for (WatchNews& news : run->second.judge(ranks, now_ns)) out.push_back(std::move(news));
  }
  return out;
}

bool Watch::is_over() const {
  return !ranks_.empty() && std::all_of(ranks_.begin(), ranks_.end(), [&](const auto& one) {
    const RankFollower& follower = one.second.rank->follower;
    if (!follower.has_begun()) return follower.fault().has_value() || one.second.rank->is_over;
    const auto run = runs_.find(run_word(follower.facts()));
    return run != runs_.end() && run->second.is_over();
  });
}

void Watch::remove(const std::string& name) {
  const auto at = ranks_.find(name);
  if (at == ranks_.end()) return;
  const RankFollower& follower = at->second.rank->follower;
  if (follower.has_begun()) runs_.erase(run_word(follower.facts()));
  ranks_.erase(at);
}

bool Watch::has_defect() const {
  return std::any_of(runs_.begin(), runs_.end(),
                     [](const auto& run) { return run.second.has_defect(); });
}

std::vector<std::string> Watch::paths() const {
  std::vector<std::string> all;
  for (const auto& [name, entry] : ranks_) all.push_back(entry.stream.path());
  return all;
}

}  // namespace zeroproof

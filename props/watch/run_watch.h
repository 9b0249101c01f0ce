#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "props/replay/rank_waits.h"
#include "props/watch/certain.h"
#include "props/watch/rank_follower.h"
#include "props/watch/watch_news.h"

namespace zeroproof {

struct WatchOptions {
  std::int64_t hang_after_ns = 30'000'000'000;
  std::int64_t wait_after_ns = 5'000'000'000;
};

// One recording of a run, with what is known of its process.
struct WatchedRank {
  explicit WatchedRank(const ReplayOptions& options) : follower(options) {}

  RankFollower follower;
  std::string path;                // as it is named to the user
  std::int64_t last_event_ns = 0;  // when its last line came
  bool is_paused = false;          // it records no event now, and none is missing
  bool is_over = false;            // no further line will come
  bool has_news = false;           // lines came since it was last judged
  bool is_reported = false;        // its begin was reported
  bool is_end_reported = false;
};

// Where the lines of a rank that were given so far can be read as a file.
using TraceSnapshot = std::function<std::string(const WatchedRank&)>;

// Judges one run while it goes on, by the diagnosis of replay. Not thread-safe.
class RunWatch {
 public:
  // Both must outlive it.
  RunWatch(const WatchOptions& options, const TraceSnapshot& snapshot)
      : options_(options), snapshot_(snapshot) {}

  // All recordings of the run, ascending by rank. `now_ns` is the time since the watch began.
  std::vector<WatchNews> judge(const std::vector<WatchedRank*>& ranks, std::int64_t now_ns);

  bool is_over() const { return is_over_; }
  // A defect was reported; a hang that went on is none.
  bool has_defect() const;

 private:
  using Ranks = std::vector<WatchedRank*>;

  // A place in which ranks wait, and what was reported of it.
  struct Waiting {
    DiagnosisWait wait;
    bool is_reported = false;
    bool is_judged = false;  // whether it is a hang
    bool is_hang = false;
  };

  void report_ranks();
  void take_parts();
  void find_waits();
  void report_certain();
  void report_waits();
  void report_wait(Waiting& place);
  void judge_hang(Waiting& place, const WatchNews& seen);
  void report_end();
  bool has_ended() const;
  bool is_on_device() const;
  std::optional<std::int64_t> quiet_ns(const DiagnosisWait& wait) const;

  struct Answer {
    std::vector<Diagnosis> found;
    bool ends_apart = false;
  };
  Answer diagnosed(const std::vector<TraceReplayer::SoFar>& parts, bool compares_ranks) const;
  void report_finding(const Diagnosis& found, WatchNews as);
  std::string signature() const;
  bool has_candidates() const;
  std::vector<WatchPlace> places(const std::vector<std::int32_t>& of) const;
  WatchNews news_of(WatchNews::Kind kind) const;

  const WatchOptions& options_;
  const TraceSnapshot& snapshot_;
  Ranks ranks_;
  std::int64_t now_ns_ = 0;
  std::vector<TraceReplayer::SoFar> parts_;  // of each rank, at its last news
  std::vector<DiagnosisWait> waits_;
  PartingLanes parting_;
  bool has_parted_ = false;
  std::string judged_;                      // the signature that was diagnosed last
  std::set<std::string> reported_;          // findings
  std::map<std::string, Waiting> waiting_;  // by the words of the place
  std::vector<WatchNews> out_;
  bool has_defect_ = false;
  bool is_over_ = false;
};

}  // namespace zeroproof

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "props/watch/rank_stream.h"
#include "props/watch/run_watch.h"

namespace zeroproof {

// Follows the recordings of running jobs and says what is wrong as it happens, by the diagnosis of
// replay. It reads no clock and no folder: bytes come through the streams, the time as a number.
// Not thread-safe.
class Watch {
 public:
  Watch(const WatchOptions& options, TraceSnapshot snapshot);

  // One recording that was found, by a name that stays the same while it is watched.
  void add(const std::string& name, RankStream stream);
  bool has(const std::string& name) const { return ranks_.contains(name); }
  // It is of a job before: another process writes that file now.
  void remove(const std::string& name);
  // Its process has died without closing it, and no other will.
  void set_dead(const std::string& name);

  // Reads what is new and judges it.
  std::vector<WatchNews> tick(std::int64_t now_ns);

  bool is_empty() const { return ranks_.empty(); }
  // Every run that was seen has ended.
  bool is_over() const;
  bool has_defect() const;
  bool has_fault() const { return has_fault_; }
  // Paths of the files that exist or will.
  std::vector<std::string> paths() const;

 private:
  struct Entry {
    RankStream stream;
    std::unique_ptr<WatchedRank> rank;
    bool is_dead = false;
    bool is_fault_reported = false;
  };

  void read(Entry& entry, std::int64_t now_ns);
  void report_fault(Entry& entry, std::int64_t now_ns, std::vector<WatchNews>& out);

  WatchOptions options_;
  TraceSnapshot snapshot_;
  ReplayOptions levels_;
  std::map<std::string, Entry> ranks_;  // by name
  std::map<std::string, RunWatch> runs_;
  bool has_fault_ = false;
};

}  // namespace zeroproof

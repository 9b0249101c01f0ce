#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "props/train/stream_judge.h"
#include "zeroproof/internal/engine/runtime/access.h"

namespace zeroproof::hunt {

// What of a program's overlap is judged.
struct OverlapRules {
  bool judges_reductions = false;  // two flat buffers take turns, and one rank owns all
  bool judges_host = false;        // stage 3
  bool judges_gathers = false;     // stage 3, and modules alone gather
  int engines = 1;

  bool judges_anything() const { return judges_reductions || judges_host || judges_gathers; }
};

// Whether the computation of one rank waits for all that is reduced beside it without a use for
// what that made, or its host for what it has only just queued: R20. Storages are identified by
// address, within one wait.
class OverlapJudge final : public AccessObserver {
 public:
  explicit OverlapJudge(const OverlapRules& rules);

  void on_access(const Access& access) override;
  void on_record(StreamId stream, StreamEvent event) override;
  void on_wait(StreamId stream, StreamEvent event) override;
  void on_host_wait(StreamEvent event) override;
  void on_record_use(StreamId, const TensorImpl&) override {}
  void on_free(const Storage& storage) override;

  const std::string& finding() const { return finding_; }  // the first; empty: none

 private:
  static constexpr std::size_t kStreams = 4;
  // How much of each stream's work is known to be done: its events that work came before.
  using Clock = std::array<std::int64_t, kStreams>;

  void see_gathers(const Access& access);
  void judge_ahead(StreamId stream);

  bool is_judged_;
  bool is_host_judged_;
  bool is_gather_judged_;
  std::vector<const Storage*> reduced_;      // what the reduction stream used, in order
  std::map<StreamEvent, std::size_t> ends_;  // of its events: how much came before
  std::size_t known_ = 0;                    // the computation has waited for as much
  std::set<const Storage*> awaited_;         // of the last whole wait; empty: used since
  StreamEvent newest_;                       // of the reduction stream
  std::int64_t ahead_max_;                   // reductions that may be queued
  std::size_t gathers_max_;
  std::array<bool, kStreams> has_worked_{};  // since its last event
  std::array<Clock, kStreams> clocks_{};     // of streams
  Clock host_{};
  std::map<StreamEvent, Clock> events_;
  std::deque<std::int64_t> gathered_;  // what the computation waited for, and the host did not
  std::map<const Storage*, std::int64_t> made_;  // by the stream of gathers, and when
  std::string finding_;
};

// Races of streams on all ranks, and the overlap on the first.
class AccessWatch final : public train::RunWatch {
 public:
  AccessWatch(int world_size, const OverlapRules& rules)
      : races_(world_size), overlap_(rules), both_(races_.observer(0), overlap_) {}

  std::vector<RankObservers> observers() override;
  void attach(std::size_t, train::EngineTarget::Options&) override {}

  train::StreamJudge& races() { return races_; }
  const std::string& overlap_finding() const { return overlap_.finding(); }

 private:
  // Forwards each access to two observers.
  class Both final : public AccessObserver {
   public:
    Both(AccessObserver& first, AccessObserver& second) : first_(first), second_(second) {}
    void on_access(const Access& access) override;
    void on_record(StreamId stream, StreamEvent event) override;
    void on_wait(StreamId stream, StreamEvent event) override;
    void on_host_wait(StreamEvent event) override;
    void on_record_use(StreamId stream, const TensorImpl& tensor) override;
    void on_free(const Storage& storage) override;

   private:
    AccessObserver& first_;
    AccessObserver& second_;
  };

  train::StreamJudge races_;
  OverlapJudge overlap_;
  Both both_;
};

}  // namespace zeroproof::hunt

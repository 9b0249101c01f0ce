#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/runtime/host/rendezvous.h"

namespace zeroproof::host {

// Of ranks that are threads of this process; the last to come does the work of all.
class ThreadRendezvous final : public Rendezvous {
 public:
  struct Options {
    std::string name;  // "data group [0, 1]"
    int size = 1;
    std::chrono::milliseconds timeout{60'000};
    bool has_garbage = true;  // see run_collective
  };

  explicit ThreadRendezvous(Options options);

  void meet(int rank, std::int64_t sequence, const Collective& collective) override;
  void leave(int rank) override;
  void return_to(int rank) override;
  void abort(const std::string& reason) override;
  std::optional<std::string> failure() override;
  void throw_if_failed() override;

 private:
  struct Failure {
    std::string text;
    bool is_abort = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  void start(std::int64_t sequence);
  void wait_for_others(Lock& lock, std::int64_t sequence);
  void finish_one();
  void fail(Failure failure);
  void raise() const;
  void fail_if_mismatched(std::int64_t sequence);
  void fail_if_deserted(std::int64_t sequence);
  std::string title(std::int64_t sequence, std::size_t rank) const;
  std::string missing_ranks() const;

  Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<const Collective*> parts_;  // null: not here yet; not to be followed once failed
  std::vector<bool> has_left_;
  std::vector<double> scratch_;
  std::optional<Failure> failure_;
  int arrived_ = 0;
  int to_leave_ = 0;  // of the collective that is done
  std::int64_t done_ = -1;
};

}  // namespace zeroproof::host

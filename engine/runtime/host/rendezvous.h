#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/runtime/fault.h"
#include "engine/runtime/host/collective.h"

namespace zeroproof::host {

// What ranks get that did not fail themselves: another one aborted the group.
class GroupAborted final : public RuntimeFault {
 public:
  using RuntimeFault::RuntimeFault;
};

// Where the ranks of one group meet for a collective; the last to come does the work of all. What
// fails once, fails on every rank and for good. Thread-safe.
class Rendezvous {
 public:
  struct Options {
    std::string name;  // "data group [0, 1]"
    int size = 1;
    std::chrono::milliseconds timeout{60'000};
    bool has_garbage = true;  // see run_collective
  };

  explicit Rendezvous(Options options);

  // Blocks until all ranks have brought their part and the work is done. Throws RuntimeFault.
  void meet(int rank, std::int64_t sequence, const Collective& collective);

  // The rank will not come any more; whoever waits for it fails.
  void leave(int rank);
  void return_to(int rank);  // takes leave() back

  void abort(const std::string& reason);
  std::optional<std::string> failure();
  void throw_if_failed();

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

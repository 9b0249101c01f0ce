#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "zeroproof/engine/runtime/process/launch.h"
#include "zeroproof/internal/engine/runtime/process/store.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

struct JobOptions {
  std::string store_folder = {};  // empty: where the launch says; see Job::join
  // Of a store at MASTER_ADDR: a file of this user's that no other may read, with a secret of 16
  // bytes or more. Empty: the launch has it, or rank 0 makes one on the machine.
  std::string store_token_file = {};
  std::chrono::milliseconds timeout{60'000};  // of a process that waits for others
};

// The processes that train together, a rank each, as this one sees them. A thread of its own looks
// whether all live. Once one has failed or is gone, every call that waits throws, on every process
// that is left, and says which. Calls that all have to make are made by all in one order.
class Job {
 public:
  // Waits for all processes. Their store is in the folder of the options, else at MASTER_ADDR and
  // MASTER_PORT, else, if all are on this machine, in its folder for temporary files. A store at
  // MASTER_ADDR asks for a token; see JobOptions. Usage: neither is there, or it cannot be used;
  // failed: some process did not come, and which.
  static Result<std::shared_ptr<Job>> join(const Launch& launch, const JobOptions& options);
  // The process of this launch, on a store that it has joined. Throws RuntimeFault for `failed`.
  Job(const Launch& launch, std::unique_ptr<Store> store, std::chrono::milliseconds timeout);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const Launch& launch() const { return launch_; }
  int rank() const { return launch_.rank; }
  int size() const { return launch_.size; }
  std::chrono::milliseconds timeout() const { return timeout_; }

  // What each process gave, by rank. For all to call.
  std::vector<std::string> all_gather(std::string_view mine);
  // What rank 0 gave, to all. It may take as long as it lives.
  std::string broadcast(std::string_view of_rank_0);
  void barrier() { all_gather({}); }

  // Keys of the caller's own. wait() is for what `rank` sets; `what` says it in words.
  void set(const std::string& key, std::string_view value);
  std::string wait(const std::string& key, int rank, const std::string& what);
  void remove(const std::string& key);
  // Different at every call, and the same on every process: for keys.
  std::int64_t next_number() { return numbers_++; }

  // Why this process cannot go on; the others hear of it.
  void fail(const std::string& reason);
  // An error of this rank; or, where another process turns out to be gone, that it is: what talks
  // to a process may fail before the job notices.
  std::exception_ptr explained(const std::exception_ptr& error) const;
  // What another process met; none: they all work.
  std::optional<std::string> failure() const;
  // Called once, with the failure of another process, on a thread of the job, or at once if there
  // is one. It ends with the handle.
  using Listener = std::function<void(const std::string& failure)>;
  std::shared_ptr<void> on_failure(Listener listener);

 private:
  enum class Limit : bool { timeout, none };
  struct Awaited {
    std::string key;
    int rank;
    std::string what;
    Limit limit = Limit::timeout;
  };

  void meet();
  void watch(const std::stop_token& stop);
  void poll_peers();
  void note(const std::string& failure);
  std::string wait_for(const Awaited& awaited);
  PeerState presence_of(int rank) const;
  void raise_failure() const;
  std::string process_name(int rank) const;  // "rank 1 (process 812 on node7)"

  Launch launch_;
  std::unique_ptr<Store> store_;
  std::chrono::milliseconds timeout_;
  std::vector<std::string> names_;  // by rank; empty: not here yet
  std::int64_t numbers_ = 0;
  std::vector<std::string> spent_;  // keys that are not asked for again

  mutable std::mutex mutex_;
  std::optional<std::string> failure_;
  std::vector<PeerState> presences_;
  std::vector<std::weak_ptr<Listener>> listeners_;
  std::condition_variable_any stopping_;
  std::jthread watcher_;
};

}  // namespace zeroproof

#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/runtime/host/rendezvous.h"
#include "zeroproof/engine/runtime/process/job.h"

namespace zeroproof::host {

// Of ranks that are the processes of a job: each leaves its part in the job's store, reads those of
// the others and does the whole work on copies of their memory, so that the bits are those of
// threads. Groups are made in one order on every process.
class ProcessRendezvous final : public Rendezvous {
 public:
  // `ranks`: of the world, in group order. `has_garbage`: see run_collective.
  ProcessRendezvous(std::shared_ptr<Job> job, std::string name, std::vector<int> ranks,
                    bool has_garbage);

  void meet(int rank, std::int64_t sequence, const Collective& collective) override;
  void leave(int) override {}  // the job informs waiting ranks when the process ends
  void return_to(int) override {}
  void abort(const std::string& reason) override;
  std::optional<std::string> failure() override;
  void throw_if_failed() override;

 private:
  std::string key_of(std::int64_t sequence, std::size_t rank) const;
  std::string title(std::int64_t sequence, const Collective& collective) const;
  [[noreturn]] void fail(const std::string& text);

  std::shared_ptr<Job> job_;
  std::string name_;
  std::vector<int> ranks_;
  bool has_garbage_;
  std::int64_t number_;  // of the group, on every process
  std::vector<double> scratch_;
  std::mutex mutex_;
  std::string failure_;
  bool is_aborted_ = false;
};

}  // namespace zeroproof::host

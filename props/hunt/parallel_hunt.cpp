#include "props/hunt/parallel_hunt.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace zeroproof::hunt {

std::vector<ProgramFound> hunt_all(const std::vector<Mutant>& faults,
                                   const ProgramHuntOptions& options, std::size_t workers,
                                   const ProgramHuntWatch& watch,
                                   const std::function<void(const ProgramFound&)>& on_found) {
  std::vector<ProgramFound> found(faults.size());
  std::vector<std::exception_ptr> errors(std::max<std::size_t>(workers, 1));
  std::atomic<std::size_t> next = 0;
  std::mutex one_at_a_time;
  const auto work = [&](std::size_t worker) {
    try {
      ProgramHunter hunter(options, watch);
      for (std::size_t at = next++; at < faults.size(); at = next++) {
        found[at] = hunter.hunt(faults[at]);
        const std::lock_guard lock(one_at_a_time);
        if (on_found) on_found(found[at]);
      }
    } catch (...) {
      errors[worker] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t worker = 1; worker < errors.size(); ++worker)
      threads.emplace_back(work, worker);
    work(0);
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return found;
}

}  // namespace zeroproof::hunt

#include "engine/runtime/bounded_work.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace zeroproof {
namespace {

struct Running {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t works = 0;
};

}  // namespace

bool run_within(std::vector<std::function<void()>> works, std::chrono::milliseconds at_most) {
  const auto running = std::make_shared<Running>();
  running->works = works.size();
  for (std::function<void()>& work : works)
    std::thread([running, work = std::move(work)] {
      work();
      const std::lock_guard lock(running->mutex);
      --running->works;
      running->changed.notify_all();
    }).detach();
  std::unique_lock lock(running->mutex);
  return running->changed.wait_for(lock, at_most, [&] { return running->works == 0; });
}

}  // namespace zeroproof

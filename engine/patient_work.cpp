#include "engine/patient_work.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace zeroproof {
namespace {

enum class Progress { working, at_barrier, done };
using Request = std::function<void()>;

// What the thread of the work and that of its rank tell each other.
class WorkProgress {
 public:
  explicit WorkProgress(Progress now) : now_(now) {}

  // Of the work: waits to be released. Throws when the rank gives up.
  void wait_at_barrier() {
    std::unique_lock lock(mutex_);
    now_ = Progress::at_barrier;
    changed_.notify_all();
    changed_.wait(lock, [this] { return now_ == Progress::working || is_abandoned_; });
    if (is_abandoned_) throw std::runtime_error("the other ranks of the work are gone");
  }
  // Of the work: runs it on the rank's thread, and throws what it throws.
  void run_on_rank(const Request& request) {
    std::unique_lock lock(mutex_);
    request_ = &request;
    changed_.notify_all();
    changed_.wait(lock, [this] { return request_ == nullptr || is_abandoned_; });
    if (is_abandoned_) throw std::runtime_error("the other ranks of the work are gone");
    if (auto error = std::exchange(request_error_, nullptr)) std::rethrow_exception(error);
  }
  void end(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    now_ = Progress::done;
    error_ = std::move(error);
    changed_.notify_all();
  }

  // Of the rank: does what the work asks for, and says where the work is when it is not working any
  // more, or after a moment. Throws what the work threw.
  Progress wait_a_moment() {
    constexpr std::chrono::milliseconds kMoment{200};
    const auto end = std::chrono::steady_clock::now() + kMoment;
    std::unique_lock lock(mutex_);
    const auto has_news = [this] { return now_ != Progress::working || request_ != nullptr; };
    while (changed_.wait_until(lock, end, has_news) && request_ != nullptr) serve(lock);
    if (error_) std::rethrow_exception(error_);
    return now_;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    if (now_ == Progress::at_barrier) now_ = Progress::working;
    changed_.notify_all();
  }
  void abandon() {
    const std::lock_guard lock(mutex_);
    is_abandoned_ = true;
    changed_.notify_all();
  }

 private:
  void serve(std::unique_lock<std::mutex>& lock) {
    const Request& request = *request_;
    lock.unlock();
    std::exception_ptr error;
    try {
      request();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    request_error_ = std::move(error);
    request_ = nullptr;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const Request* request_ = nullptr;  // of the work, not served yet
  std::exception_ptr request_error_;
  Progress now_;
  bool is_abandoned_ = false;
  std::exception_ptr error_;
};

struct Counts {
  double working = 0.0;
  double at_barrier = 0.0;
};

// Of all ranks.
Counts meet(ZeroContext& context, Progress own) {
  Stream& stream = context.compute();
  const Tensor counts = context.runtime.memory().allocate(2, DType::float64);
  context.kernels().write(
      stream, Span::of(counts),
      {own == Progress::working ? 1.0 : 0.0, own == Progress::at_barrier ? 1.0 : 0.0});
  for (const Communicator* ranks : {&context.data, &context.tensor}) {
    if (ranks->size() == 1) continue;
    ProcessGroup& group = ranks->group();
    group.wait(group.all_reduce(stream, Span::of(counts), ReduceOp::sum), stream);
  }
  const std::vector<double> all = context.kernels().read(stream, Span::of(counts));
  return {.working = all[0], .at_barrier = all[1]};
}

void meet_until_done(ZeroContext& context, WorkProgress& progress) {
  for (;;) {
    const Counts all = meet(context, progress.wait_a_moment());
    if (all.working > 0.0) continue;
    if (all.at_barrier == 0.0) return;
    progress.release();
  }
}

}  // namespace

void run_patiently(ZeroContext& context, const std::function<void(const WorkSide&)>& work) {
  if (context.data.size() == 1 && context.tensor.size() == 1) {
    if (work) work({.barrier = [] {}, .on_rank = [](const Request& request) { request(); }});
    return;
  }
  WorkProgress progress(work ? Progress::working : Progress::done);
  std::jthread thread;
  if (work)
    thread = std::jthread([&work, &progress] {
      std::exception_ptr error;
      try {
        work({.barrier = [&progress] { progress.wait_at_barrier(); },
              .on_rank = [&progress](const Request& request) { progress.run_on_rank(request); }});
      } catch (...) {
        error = std::current_exception();
      }
      progress.end(std::move(error));
    });
  try {
    meet_until_done(context, progress);
  } catch (...) {
    progress.abandon();
    throw;
  }
}

}  // namespace zeroproof

#include "engine/runtime/side_work.h"

#include <chrono>
#include <utility>

#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof {

SideWork::SideWork(const Work& work) : now_(work ? Progress::working : Progress::done) {
  if (work) thread_ = std::jthread([this, &work] { run(work); });
}

SideWork::~SideWork() {
  const std::lock_guard lock(mutex_);
  is_abandoned_ = true;
  changed_.notify_all();
}

void SideWork::run(const Work& work) {
  std::exception_ptr error;
  try {
    work({.barrier = [this] { wait_at_barrier(); },
          .on_rank = [this](const Request& request) { run_on_rank(request); }});
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  now_ = Progress::done;
  error_ = std::move(error);
  changed_.notify_all();
}

void SideWork::wait_at_barrier() {
  std::unique_lock lock(mutex_);
  now_ = Progress::at_barrier;
  changed_.notify_all();
  changed_.wait(lock, [this] { return now_ == Progress::working || is_abandoned_; });
  if (is_abandoned_) throw RuntimeFault("the rank of this work has given up");
}

void SideWork::run_on_rank(const Request& request) {
  std::unique_lock lock(mutex_);
  request_ = &request;
  changed_.notify_all();
  changed_.wait(lock, [this] { return request_ == nullptr || is_abandoned_; });
  if (is_abandoned_) throw RuntimeFault("the rank of this work has given up");
  if (auto error = std::exchange(request_error_, nullptr)) std::rethrow_exception(error);
}

SideWork::Progress SideWork::wait_a_moment() {
  constexpr std::chrono::milliseconds kMoment{200};
  const auto end = std::chrono::steady_clock::now() + kMoment;
  std::unique_lock lock(mutex_);
  const auto has_news = [this] { return now_ != Progress::working || request_ != nullptr; };
  while (changed_.wait_until(lock, end, has_news) && request_ != nullptr) serve(lock);
  if (error_) std::rethrow_exception(error_);
  return now_;
}

void SideWork::serve(std::unique_lock<std::mutex>& lock) {
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

void SideWork::release() {
  const std::lock_guard lock(mutex_);
  if (now_ == Progress::at_barrier) now_ = Progress::working;
  changed_.notify_all();
}

}  // namespace zeroproof

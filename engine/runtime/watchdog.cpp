#include "engine/runtime/watchdog.h"

#include <algorithm>
#include <utility>

namespace zeroproof {

Watchdog::Watchdog(Milliseconds at_most, Alarm alarm)
    : at_most_(at_most),
      alarm_(std::move(alarm)),
      thread_([this](const std::stop_token& stop) { watch(stop); }) {}

Watchdog::~Watchdog() = default;

void Watchdog::watch(const std::stop_token& stop) {
  constexpr Milliseconds kLongestLook{250};
  const Milliseconds look = std::min(kLongestLook, at_most_ / 4 + Milliseconds{1});
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    stopping_.wait_for(lock, stop, look, [] { return false; });
    const auto age = std::chrono::duration_cast<Milliseconds>(Clock::now() - since_);
    if (stop.stop_requested() || waits_ == 0 || has_told_ || age < at_most_) continue;
    has_told_ = true;
    const std::string what = what_;
    lock.unlock();
    alarm_(what, age);
    lock.lock();
  }
}

Watchdog::Wait::Wait(Watchdog* watchdog, const char* what) : watchdog_(watchdog) {
  if (watchdog_ == nullptr) return;
  const std::lock_guard lock(watchdog_->mutex_);
  if (watchdog_->waits_++ > 0) return;
  watchdog_->what_ = what;
  watchdog_->since_ = Clock::now();
  watchdog_->has_told_ = false;
}

Watchdog::Wait::~Wait() {
  if (watchdog_ == nullptr) return;
  const std::lock_guard lock(watchdog_->mutex_);
  --watchdog_->waits_;
}

}  // namespace zeroproof

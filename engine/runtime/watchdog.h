#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace zeroproof {

// Watches one thread of a rank while it is inside calls that may not return, as those of a driver
// after a collective that never ends. A thread of its own looks every moment.
class Watchdog {
 public:
  using Milliseconds = std::chrono::milliseconds;
  // Called on the watchdog's thread, once a wait: has to end what is waited for.
  using Alarm = std::function<void(const std::string& what, Milliseconds age)>;

  Watchdog(Milliseconds at_most, Alarm alarm);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // The watched thread is inside such a call as long as this lives. Null: the call is not watched.
  // Of several at a time the outermost counts. `what` is static.
  class Wait {
   public:
    Wait(Watchdog* watchdog, const char* what);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    Watchdog* watchdog_;
  };

 private:
  using Clock = std::chrono::steady_clock;

  void watch(const std::stop_token& stop);

  const Milliseconds at_most_;
  const Alarm alarm_;
  std::mutex mutex_;
  std::condition_variable_any stopping_;
  int waits_ = 0;
  const char* what_ = "";  // of the outermost
  Clock::time_point since_;
  bool has_told_ = false;
  std::jthread thread_;
};

}  // namespace zeroproof

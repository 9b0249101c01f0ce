// The twin of fiber.cpp for ThreadSanitizer, which does not follow switched stacks: a thread a
// fiber, of which exactly one runs. A thousand times slower.
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "model/check.h"
#include "sim/world/fiber.h"

namespace zeroproof::sim {

struct Fiber::State {
  std::function<void()> body;
  std::mutex mutex;
  std::condition_variable changed;
  std::jthread thread;  // from the first resume() on
  bool is_inside = false;
  bool is_done = false;

  void hand_over(bool to_inside) {
    std::unique_lock lock(mutex);
    is_inside = to_inside;
    changed.notify_all();
    changed.wait(lock, [&] { return is_inside != to_inside; });
  }
};

Fiber::Fiber(std::function<void()> body) : state_(std::make_unique<State>()) {
  state_->body = std::move(body);
}

Fiber::~Fiber() {
  ZP_CHECK(!state_->thread.joinable() || state_->is_done,
           "a fiber destroyed before its body ended");
}

void Fiber::resume() {
  State& state = *state_;
  ZP_CHECK(!state.is_done, "a fiber resumed after its end");
  if (!state.thread.joinable()) {
    state.is_inside = true;
    state.thread = std::jthread([&state] {
      state.body();
      const std::unique_lock lock(state.mutex);
      state.is_done = true;
      state.is_inside = false;
      state.changed.notify_all();
    });
    std::unique_lock lock(state.mutex);
    state.changed.wait(lock, [&] { return !state.is_inside; });
    return;
  }
  state.hand_over(true);
}

void Fiber::suspend() {
  state_->hand_over(false);
}

bool Fiber::is_done() const {
  return state_->is_done;
}

}  // namespace zeroproof::sim

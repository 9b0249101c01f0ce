#pragma once

#include <functional>
#include <memory>

namespace zeroproof::sim {

// A function with a stack of its own that runs in turns with its caller.
// Exceptions must not leave the body. What the C++ runtime keeps about exceptions under way is
// the fiber's own, so that it may be suspended within a catch block. Not thread-safe.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();  // the body has ended, or was never resumed
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void resume();   // from outside: runs the body until it suspends or ends
  void suspend();  // from within the body: back to who resumed it
  bool is_done() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zeroproof::sim

#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "props/train/window_inputs.h"

namespace zeroproof::train {

// Calls of a generated window that run short of memory and are repeated, as whoever catches that
// the device has no room, frees something, and does it again.
class RepeatedCalls {
 public:
  // Both must outlive it.
  RepeatedCalls(const WindowContext& window, WindowInputs& inputs)
      : window_(window), inputs_(inputs) {}

  // Micro-batch `at` of the case does what may fail in one of these calls; as often as it takes.
  struct Attempt {
    std::size_t at = 0;
    std::vector<Shortage> in;
  };
  void until_it_fits(const Attempt& attempt, const std::function<void()>& act);

  // While it lives, the call is one that the device may have no room for, if it is one of `calls`.
  class Armed {
   public:
    Armed(const RepeatedCalls& repeated, std::initializer_list<Shortage> calls);
    ~Armed();
    Armed(const Armed&) = delete;
    Armed& operator=(const Armed&) = delete;

   private:
    ShortRuntime* runtime_ = nullptr;
  };

 private:
  bool fits(const MicroSpec& micro, const std::function<void()>& act);

  const WindowContext& window_;
  WindowInputs& inputs_;
  const MicroSpec* short_of_ = nullptr;  // memory: what it says is still to come
};

}  // namespace zeroproof::train

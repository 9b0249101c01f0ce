#pragma once

#include <cxxabi.h>

#include <utility>

namespace zeroproof::sim {

// The exceptions that one line of control has caught and not left yet: two words which the
// Itanium C++ ABI keeps a thread, and which each fiber needs for itself.
class ExceptionState {
 public:
  // Exchanges them with those of the running thread.
  void swap() {
    auto* const running = reinterpret_cast<Words*>(abi::__cxa_get_globals());
    std::swap(words_.caught, running->caught);
    std::swap(words_.uncaught, running->uncaught);
  }

 private:
  struct Words {
    void* caught = nullptr;
    unsigned uncaught = 0;
  };
  Words words_;
};

}  // namespace zeroproof::sim

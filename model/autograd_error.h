#pragma once

#include <stdexcept>
#include <string>

namespace zeroproof {

// What PyTorch reports as RuntimeError: a misuse of autograd by the differentiated program. It
// travels through hooks, nodes and nested backwards like any exception of a hook (rules F1, R5).
class AutogradError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace zeroproof

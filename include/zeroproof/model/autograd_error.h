#pragma once

#include "zeroproof/model/usage_error.h"

namespace zeroproof {

// What PyTorch reports as RuntimeError: a misuse of autograd by the differentiated program. It
// travels through hooks, nodes and nested backwards like any exception of a hook (rules F1, R5).
class AutogradError : public UsageError {
 public:
  using UsageError::UsageError;
};

}  // namespace zeroproof

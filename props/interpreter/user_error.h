#pragma once

#include <stdexcept>

namespace zeroproof::program {

// What the user's own code throws (Raise), and catches (Catch).
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace zeroproof::program

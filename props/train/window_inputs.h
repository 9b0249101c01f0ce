#pragma once

#include <cstdint>

#include "props/train/window_context.h"

namespace zeroproof::train {

// What comes into the forwards of a generated window: activations, and which of two experts runs.
class WindowInputs {
 public:
  // The context must outlive it.
  explicit WindowInputs(const WindowContext& window) : spec_(window.spec), pass_(window.pass) {}

  // Of the next forward; its activations need a gradient where the case says so.
  TensorList next();
  // Each rank its own where the engine can do it: as a leaf module.
  int next_expert();

  // Whoever does something again gets the same inputs again.
  struct Position {
    std::int64_t of_pass = 0;
    int forwards = 0;
  };
  Position position() const { return {.of_pass = pass_.position(), .forwards = forwards_}; }
  void rewind(const Position& position);

 private:
  const CaseSpec& spec_;
  Pass& pass_;
  int forwards_ = 0;
};

}  // namespace zeroproof::train

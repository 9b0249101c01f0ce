#pragma once

#include "zeroproof/model/checkpoint/checkpoint.h"

namespace zeroproof {

// Runs `body` inside the context, or alone when the context is empty. False when the body threw
// and the context let it go no further.
template <class Body>
bool run_inside(const CheckpointContext& context, const Body& body) {
  if (context.enter) context.enter();
  try {
    body();
  } catch (...) {
    if (context.exit && context.exit(std::current_exception())) return false;
    throw;
  }
  if (context.exit) context.exit(nullptr);
  return true;
}

}  // namespace zeroproof

#pragma once

#include <cstdint>

#include "zeroproof/internal/engine/runtime/span.h"
#include "zeroproof/model/ids.h"

namespace zeroproof {

// Hears all that decides how an engine goes on, in one fixed order, to compare states.
// Numbers that only count (graph tasks, backwards, collectives) are left out.
class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  virtual void number(std::uint64_t value) = 0;
  // Memory whose values will be read before they are written again.
  virtual void values(Span live) = 0;
};

// Where the window's gradient of one parameter lies on this rank, from its element `begin` on. A
// parameter may have several, or none. Valid as long as the engine.
struct GradientSlice {
  ParamId parameter;
  std::int64_t begin = 0;
  Span values;
};

}  // namespace zeroproof

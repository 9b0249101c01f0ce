#pragma once

#include <stdexcept>
#include <string>

#include "zeroproof/model/event.h"

namespace zeroproof {

// Something that failed below the engine: a collective that timed out or did not match, no
// memory, a fault that was injected. Reported when it is noticed, possibly later than it happened.
class RuntimeFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Where faults can be injected: reached once for every event of a run, recorded or not.
class FaultPoint {
 public:
  virtual ~FaultPoint() = default;
  // May throw; the engine treats that as if the operation of the event had thrown.
  virtual void reach(EventKind kind, NameId name) = 0;
};

}  // namespace zeroproof

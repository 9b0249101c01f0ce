#pragma once

#include <string>

#include "props/interpreter/engine_target.h"

namespace zeroproof::hunt {

// An engine with something wrong in it, and the engine beside which that shows. Plain data.
struct Mutant {
  std::string id;
  std::string sentence;  // what is wrong
  // Numbers of properties, one of which has to be falsified ("P26 R7"); empty: any.
  std::string properties;
  program::EngineVariant variant;
  program::EngineVariant reference = {};  // in which every property has to hold
};

}  // namespace zeroproof::hunt

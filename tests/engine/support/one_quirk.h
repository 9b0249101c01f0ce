#pragma once

#include "zeroproof/engine/quirks.h"

namespace zeroproof {

inline Quirks only(Quirk quirk) {
  Quirks quirks;
  quirks.add(quirk);
  return quirks;
}

}  // namespace zeroproof

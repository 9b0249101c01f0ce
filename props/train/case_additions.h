#pragma once

#include <span>

#include "props/train/case_spec.h"
#include "props/train/draws.h"

namespace zeroproof::train {

// Something more that a case may have, drawn in one of so many.
struct Addition {
  int one_in;
  void (*add)(CaseSpec& spec, Draws& draws);
};

// Each addition that is drawn, one behind the other, as far as the case stays valid with it.
CaseSpec with_each(const CaseSpec& spec, std::span<const Addition> additions, Draws& draws);

// Numbers from 1 on, as the fields of a case name calls and layers.
int some_call(const CaseSpec& spec, Draws& draws);
int some_layer(const CaseSpec& spec, Draws& draws);

}  // namespace zeroproof::train

#pragma once

#include <cstdint>

#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every second case, a few things more, from a stream of their own, as far as they fit. Half of
// all cases are as they were before there were any. In every third, whatever it is, things that
// came later still, from another stream; and in every fourth what comes when an order of modules is
// known, from a third one.
CaseSpec with_extras(const CaseSpec& spec, std::uint64_t seed);

}  // namespace zeroproof::train

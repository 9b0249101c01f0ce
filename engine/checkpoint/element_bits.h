#pragma once

#include <cstdint>

#include "zeroproof/model/dtype.h"

namespace zeroproof {

// An element as the bits of its dtype, in the low bits of the result, and back. Encoding a value
// that the dtype does not have gives the bits of some other value: decode to see.
std::uint64_t encode_element(DType dtype, double value);
double decode_element(DType dtype, std::uint64_t bits);

}  // namespace zeroproof

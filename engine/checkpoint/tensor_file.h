#pragma once

#include <string>
#include <string_view>

#include "zeroproof/engine/full_tensor.h"
#include "zeroproof/model/dtype.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// One tensor as a file that explains itself: a line of JSON (schema, name, dtype, shape), then the
// elements, little-endian and row-major. Stored in `dtype` if every bit of every value survives
// that, else in float64.
std::string tensor_bytes(const FullTensor& tensor, DType dtype);

// `path` is for messages; code unreadable.
Result<FullTensor> parse_tensor(std::string_view bytes, const std::string& path);

}  // namespace zeroproof

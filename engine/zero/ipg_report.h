#pragma once

#include <cstdint>
#include <string>

#include "model/dtype.h"

namespace zeroproof {

// How full the bucket of one communication dtype is when a gradient comes in (zero_semantics 6.4).
struct IpgUse {
  DType dtype = DType::float32;
  std::int64_t elements = 0;  // in the bucket
  std::int64_t incoming = 0;
  std::int64_t reduce_bucket_size = 1;
};

// floor(100 * (elements + incoming) / reduce_bucket_size); more than 100 when it does not fit. A
// bucket of no elements is at 100 percent, or at 0 when nothing comes.
std::int64_t ipg_percent(const IpgUse& use);
// "bfloat16 bucket: 30 elements + 10 incoming of 50, 80 percent"
std::string ipg_report(const IpgUse& use);

}  // namespace zeroproof

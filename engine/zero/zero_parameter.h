#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "model/ids.h"
#include "model/tensor.h"

namespace zeroproof {

// One parameter of an engine, tied ones once. Its data is whole in stages 0 to 2; in stage 3 it
// comes and goes (zero_semantics 3.1).
struct ZeroParameter {
  ParamId id;  // order of creation: that of named_parameters()
  std::string name;
  NameId name_id;  // for events
  Tensor tensor;
  Shape sizes;
  std::int64_t elements = 0;
  bool requires_grad = true;
  std::int32_t group = -1;  // of the optimizer; -1: frozen
  DType communication_dtype = DType::float32;
  bool is_gradient_ready = true;  // tiled computations clear it for all but the last shard
};

using ZeroParameters = std::deque<ZeroParameter>;  // addresses stay; index = id

}  // namespace zeroproof

#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "zeroproof/model/ids.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

// One parameter of an engine, tied ones once. Its data is whole in stages 0 to 2; in stage 3 it
// comes and goes (docs/spec/zero.md 3.1).
struct ZeroParameter {
  // What hooks ask for; beside each other, because there are many parameters and a hook is short.
  ParamId id;               // order of creation: that of named_parameters()
  std::int32_t group = -1;  // of the optimizer; -1: frozen
  Tensor tensor;
  std::int64_t elements = 0;
  DType communication_dtype = DType::float32;
  bool is_gradient_ready = true;  // tiled computations clear it for all but the last shard
  bool requires_grad = true;

  std::string name;
  NameId name_id;  // for events
  Shape sizes;
};

using ZeroParameters = std::deque<ZeroParameter>;  // addresses stay; index = id

}  // namespace zeroproof

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/runtime/runtime.h"
#include "engine/zero_config.h"

namespace zeroproof {

// The optimizer's own numbers for one flat shard of master weights: moments of equal length. The
// update is element by element, so a shard gets what the whole tensor would.
class ShardOptimizer {
 public:
  // State lives where the master weights do, in `state_dtype`.
  ShardOptimizer(Runtime& runtime, const OptimizerConfig& config, std::int64_t elements,
                 DType state_dtype, Placement placement);

  // master = update(master, grad); both of this shard's length.
  void step(Stream& stream, Span master, Span grad);

  struct Moment {
    std::string_view name;  // "exp_avg"; static
    Tensor values;
  };
  const std::vector<Moment>& moments() const { return moments_; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

 private:
  Runtime& runtime_;
  OptimizerConfig config_;
  std::vector<Moment> moments_;
  std::int64_t steps_ = 0;
};

}  // namespace zeroproof

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/schedule/group_rates.h"
#include "engine/zero/gradient_divisor.h"
#include "zeroproof/engine/runtime/runtime.h"
#include "zeroproof/engine/zero_config.h"

namespace zeroproof {

// Where master weights, their optimizer state and the window's gradient live.
Placement optimizer_placement(const ZeroConfig& config);

// The optimizer's own numbers for one flat shard of master weights: moments of equal length. The
// update is element by element, so a shard gets what the whole tensor would.
class ShardOptimizer {
 public:
  // State lives where the master weights do, in the dtype that the configuration says.
  ShardOptimizer(Runtime& runtime, const ZeroConfig& config, std::int64_t elements);

  // master = update(master, grad / divisor), and lp = master, rounded, unless lp is empty; all of
  // this shard's length. A gradient in the master's dtype is divided in place, another in a copy
  // beside the state.
  void step(Stream& stream, Span master, Span grad, const GradientDivisor& divisor, Span lp);

  // The same by parts: a step begins, then each part of the shard is updated once. `begin`: the
  // number of the part's first element.
  void begin_step() { ++steps_; }
  void update_part(Stream& stream, std::int64_t begin, Span master, Span grad,
                   const GradientDivisor& divisor, Span lp);

  struct Moment {
    std::string_view name;  // "exp_avg"; static
    Tensor values;
  };
  const std::vector<Moment>& moments() const { return moments_; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  void count_replayed_step() { ++steps_; }
  void set_rates(const GroupRates& rates) { config_ = with_rates(config_, rates); }

 private:
  void divide(Stream& stream, Span grad, const GradientDivisor& divisor) const;

  Runtime& runtime_;
  OptimizerConfig config_;
  Placement placement_;
  std::vector<Moment> moments_;
  std::int64_t steps_ = 0;
};

}  // namespace zeroproof

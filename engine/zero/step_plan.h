#pragma once

#include <functional>

#include "engine/engine.h"
#include "engine/zero/zero_context.h"

namespace zeroproof {

// What all ranks decide before an update, in every stage (zero_semantics 2.19).
struct StepPlan {
  StepOutcome outcome;   // not applied: overflow
  double divisor = 1.0;  // of gradients: loss scale and clipping
};

// Overflow, the loss scale's next value, the norm, the divisor, in this order. The stage asks for
// `overflows` and `norm` as its gradients lie; neither is called where its answer is not needed.
// Collective as those are. E22 from the loss scale, which then has not changed.
StepPlan plan_step(ZeroContext& context, const std::function<bool()>& overflows,
                   const std::function<double()>& norm);

// The update of one group of master weights, and of the parameters made from them. `Group`:
// FlatGroup or SubGroup.
template <class Group>
void update_group(ZeroContext& context, Group& group, Span gradient, double divisor) {
  group.optimizer().step(context.compute(), Span::of(group.master()), gradient, divisor);
  group.write_back();
}

}  // namespace zeroproof

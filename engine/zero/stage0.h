#pragma once

#include "engine/zero/flat_optimizer.h"

namespace zeroproof {

// Stage 0: no tensor is sharded. No gradient hooks; at a boundary the local sums are all-reduced
// whole (upstream's "fallback", docs/spec/zero.md 2.7), missing ones as zeros.
class Stage0Optimizer final : public FlatOptimizer {
 public:
  explicit Stage0Optimizer(ZeroContext& context);

  bool is_zero() const override { return false; }
  bool has_gradient_hook(const ZeroParameter&) const override { return false; }
  void on_forward_begin(bool) override {}
  void add_gradient(ZeroParameter&) override {}
  void collect_gradients() override { sums_.collect(); }
  void reduce_gradients() override;
  bool abandon_gradients() override;
  void flush_coalesced() override {}
  void finalize_unmanaged() override { reduce(); }
  StepOutcome step() override;
  void zero_grad() override { drop_windows(); }
  void load(const std::vector<FullTensor>& parameters,
            const std::vector<FullTensor>& states) override;

 private:
  void reduce();
  void reduce(FlatGroup& group);
  Span flatten(FlatGroup& group, Span target);
  Span all_reduce(Span all);  // it, averaged
};

}  // namespace zeroproof

// The loss scaler under any sequence of steps, against its rule written down once more, plainly
// (docs/spec/zero.md 2.19): rc::state.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <rapidcheck/state.h>

#include <algorithm>

#include "engine/precision/loss_scaler.h"
#include "zeroproof/engine/engine_error.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kWindow = 3;
constexpr std::int64_t kPatience = 2;
constexpr double kSmallest = 2.0;

// How many steps ago things happened, in place of the scaler's own counters.
struct Rule {
  double scale = 16.0;
  std::int64_t since_overflow = 0;  // steps without one; the first step of all counts as after one
  std::int64_t patience = kPatience;
};

LossScaler made() {
  ZeroConfig config;
  config.fp16.enabled = true;
  config.fp16.initial_scale_power = 4;
  config.fp16.loss_scale_window = kWindow;
  config.fp16.hysteresis = kPatience;
  config.fp16.min_loss_scale = kSmallest;
  return LossScaler::of(config);
}

struct ScalerStep : rc::state::Command<Rule, LossScaler> {
  bool has_overflow = *rc::gen::arbitrary<bool>();

  void apply(Rule& rule) const override {
    if (has_overflow && rule.patience == 1) {
      if (rule.scale == kSmallest) return;  // refused: the state is unchanged
      rule.scale = std::max(rule.scale / 2.0, kSmallest);
    } else if (has_overflow) {
      --rule.patience;
    }
    if (has_overflow) {
      rule.since_overflow = 0;
      return;
    }
    // The step right after an overflow, or the first of all, does not count as stable.
    if (rule.since_overflow > 0 && rule.since_overflow % kWindow == 0) {
      rule.scale *= 2.0;
      rule.patience = kPatience;
    }
    ++rule.since_overflow;
  }

  void run(const Rule& before, LossScaler& scaler) const override {
    const bool is_refused = has_overflow && before.patience == 1 && before.scale == kSmallest;
    if (is_refused) {
      const LossScaler::State state = scaler.state();
      RC_ASSERT_THROWS_AS(scaler.update(true), EngineError);
      RC_ASSERT(scaler.state() == state);
      return;
    }
    scaler.update(has_overflow);
    RC_ASSERT(scaler.scale() == nextState(before).scale);
  }

  void show(std::ostream& os) const override { os << (has_overflow ? "overflow" : "step"); }
};

RC_GTEST_PROP(LossScalerState, Follows_its_rule, ()) {
  LossScaler scaler = made();
  rc::state::check(Rule{}, scaler, rc::state::gen::execOneOfWithArgs<ScalerStep>());
}

}  // namespace
}  // namespace zeroproof

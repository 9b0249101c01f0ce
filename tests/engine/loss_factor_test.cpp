// Which of loss scale and accumulation steps a loss or a gradient still lacks. Every engine here
// has a scale of 8 and 4 steps.
#include "engine/loss_factor.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tests/engine/support/one_context.h"

namespace zeroproof {
namespace {

using UpstreamRule = bool UpstreamRules::*;

constexpr GraphTaskId kTask{0};

void nothing(BackwardTracker&) {}
void forward(BackwardTracker& tracker) {
  tracker.begin_forward();
}
void backward_in_forward(BackwardTracker& tracker) {
  tracker.begin_forward();
  tracker.begin_task(kTask);
}
void before_prologue(BackwardTracker& tracker) {
  tracker.begin_task(kTask);
}
void after_prologue(BackwardTracker& tracker) {
  tracker.begin_task(kTask);
  tracker.run_prologue();
}
void own_before_prologue(BackwardTracker& tracker) {
  tracker.begin_backward();
  before_prologue(tracker);
}
void own_after_prologue(BackwardTracker& tracker) {
  tracker.begin_backward();
  after_prologue(tracker);
}

struct Situation {
  void (*events)(BackwardTracker&) = nothing;
  int managed_backwards = 0;                     // of all engines
  std::optional<double> divisor = std::nullopt;  // steps of the innermost of them
  bool scales_wrt_gas = true;
  UpstreamRule rule = nullptr;  // a hazard of upstream
  UpstreamRule other_rule = nullptr;
};

class Scene {
 public:
  explicit Scene(const Situation& situation)
      : context_(std::make_shared<VectorsModel>(std::vector<std::int64_t>{2}),
                 {.stage = 2, .gradient_accumulation_steps = 4}) {
    EXPECT_TRUE(context_->loss_scaler.set_custom(8.0));
    for (const UpstreamRule rule : {situation.rule, situation.other_rule})
      if (rule != nullptr) context_->upstream.*rule = true;
    context_->autograd.global().managed_backwards = situation.managed_backwards;
    context_->autograd.global().managed_divisor = situation.divisor;
    situation.events(context_.tracker());
    factor_.set_scales_wrt_gas(situation.scales_wrt_gas);
  }
  const LossFactor& factor() const { return factor_; }

 private:
  OneContext context_;
  LossFactor factor_{*context_};
};

TEST(LossFactor, At_a_leaf_is_what_is_missing) {
  struct Row {
    const char* what;
    Situation situation;
    double factor;
    bool is_manual;
  };
  const Row rows[] = {
      {"manual", {}, 0.25, true},
      {"manual, before its prologue", {.events = before_prologue}, 0.25, true},
      {"the same with H26",
       {.events = before_prologue, .rule = &UpstreamRules::hooks_before_prologue_recounted},
       1.0,
       true},
      {"H26, after the prologue",
       {.events = after_prologue, .rule = &UpstreamRules::hooks_before_prologue_recounted},
       0.25,
       true},
      {"in a forward", {.events = forward}, 2.0, false},
      {"a backward in a forward", {.events = backward_in_forward}, 2.0, false},
      {"the same in an engine.backward",
       {.events = backward_in_forward, .managed_backwards = 1, .divisor = 4.0},
       2.0,
       false},
      {"the same with H10",
       {.events = backward_in_forward, .rule = &UpstreamRules::stale_boundary_before_prologue},
       1.0,
       false},
      {"in its own engine.backward",
       {.events = own_after_prologue, .managed_backwards = 1, .divisor = 4.0},
       1.0,
       false},
      {"which does not divide",
       {.events = own_after_prologue, .managed_backwards = 1, .scales_wrt_gas = false},
       1.0,
       false},
      {"H22, before the prologue",
       {.events = own_before_prologue,
        .managed_backwards = 1,
        .divisor = 4.0,
        .rule = &UpstreamRules::explicit_epilogue_without_prologue},
       4.0,
       false},
      {"H22, after it",
       {.events = own_after_prologue,
        .managed_backwards = 1,
        .divisor = 4.0,
        .rule = &UpstreamRules::explicit_epilogue_without_prologue},
       1.0,
       false},
      {"in that of an engine with 2 steps",
       {.events = after_prologue, .managed_backwards = 1, .divisor = 2.0},
       0.5,
       false},
      {"the same with N6",
       {.events = after_prologue,
        .managed_backwards = 1,
        .divisor = 2.0,
        .rule = &UpstreamRules::divides_by_running_engine},
       1.0,
       false},
  };
  for (const Row& row : rows) {
    const Scene scene(row.situation);
    EXPECT_EQ(scene.factor().at_leaf(), row.factor) << row.what;
    EXPECT_EQ(scene.factor().is_backward_manual(), row.is_manual) << row.what;
  }
}

TEST(LossFactor, Of_a_managed_loss_and_at_outputs_is_there_once) {
  constexpr UpstreamRule kH8 = &UpstreamRules::divides_at_outputs;
  constexpr UpstreamRule kN6 = &UpstreamRules::divides_by_running_engine;
  struct Row {
    const char* what;
    Situation situation;
    double of_loss;
    bool divides_at_outputs;
  };
  const Row rows[] = {
      {"ours", {}, 2.0, false},
      {"not divided", {.scales_wrt_gas = false}, 8.0, false},
      {"H8", {.rule = kH8}, 8.0, true},
      {"H8, not divided", {.scales_wrt_gas = false, .rule = kH8}, 8.0, false},
      {"H8 and N6, manual", {.rule = kH8, .other_rule = kN6}, 2.0, true},
      {"H8 and N6, managed", {.managed_backwards = 1, .rule = kH8, .other_rule = kN6}, 2.0, false},
      {"N6", {.rule = kN6}, 2.0, false},
  };
  for (const Row& row : rows) {
    const Scene scene(row.situation);
    EXPECT_EQ(scene.factor().of_managed_loss(), row.of_loss) << row.what;
    EXPECT_EQ(scene.factor().divides_at_outputs(), row.divides_at_outputs) << row.what;
  }
}

}  // namespace
}  // namespace zeroproof

// The loss scale: who sets it, which loss has it, and what overflows.
#include "props/program/productions/conditions.h"

namespace zeroproof::program {
namespace {

bool can_own(const Scene& scene) {
  const bool may_own = scene.config().fp16.enabled || scene.is_alone();
  return may_own && !scene.is_autocast() && !scene.config().bf16.master_weights_and_grads;
}

bool can_scale(const Scene& scene) {
  return scene.state().supports_manual_backward() && scene.needs_scaler() && !scene.has_frames();
}

bool can_scale_whole(const Scene& scene) {
  return can_scale(scene) && scene.is_stage(0, 2);
}

bool can_spike(const Scene& scene) {
  return scene.config().stage3_module_granularity_threshold == 0 && scene.program().data.is_exact();
}

bool checks_spike(const Scene& scene) {
  return can_spike(scene) && checks_overflow(scene.config(), scene.engine_state().scaler);
}

// Its weights are no numbers from the step on.
bool ignores_spike(const Scene& scene) {
  return can_spike(scene) && !checks_overflow(scene.config(), scene.engine_state().scaler);
}

double some_scale(Scene& scene) {
  constexpr double kScales[] = {8.0, 32.0, 4.0, 2.0, 1.0};
  return kScales[scene.source().below(5)];
}

bool set_loss_scale(Scene& scene) {
  return scene.add({SetScale{.engine = scene.engine(), .loss_scale = some_scale(scene)}});
}

bool clear_and_rescale(Scene& scene) {
  return scene.train() && scene.add({ZeroGrad{.engine = scene.engine()}}) && set_loss_scale(scene);
}

// A loss has its scale, and what came before is cleared.
bool scale_clear_differentiate(Scene& scene) {
  const auto value = scene.loss();
  const std::string scaled = scene.new_value();
  return value && scene.add({Scale{.engine = scene.engine(), .value = *value, .as = scaled}}) &&
         scene.add({ZeroGrad{.engine = scene.engine()}}) && scene.add({Backward{.value = scaled}});
}

bool scale_evaluate_differentiate(Scene& scene) {
  const auto value = scene.loss();
  const std::string scaled = scene.new_value();
  if (!value || !scene.add({Scale{.engine = scene.engine(), .value = *value, .as = scaled}}))
    return false;
  Forward evaluation = scene.forward();
  evaluation.mode = Forward::Mode::no_grad;
  return scene.add({evaluation}) && scene.add({Backward{.value = scaled}});
}

// An engine.backward of another loss comes between.
bool scale_train_differentiate(Scene& scene) {
  const auto value = scene.loss();
  const std::string scaled = scene.new_value();
  if (!value || !scene.add({Scale{.engine = scene.engine(), .value = *value, .as = scaled}}))
    return false;
  const auto other = scene.loss();
  return other && scene.differentiate_managed(*other) && scene.add({Backward{.value = scaled}});
}

bool spike(Scene& scene) {
  const auto module = scene.some_owner(true);
  if (!module) return false;
  Forward forward = scene.forward();
  forward.spike = Spike{.module = *module,
                        .rank = scene.source().between(0, scene.state().world_size() - 1),
                        .value = static_cast<Spike::Value>(scene.source().below(3))};
  return scene.add_forward(forward) && scene.differentiate_all(forward.as);
}

bool has_moving_scale(const Scene& scene) {
  return checks_spike(scene) && scene.engine_state().scaler.is_dynamic() &&
         scene.is_managed_accumulation();
}

// Steps with an overflow and steps without one, each a window of its own.
bool moving_scale(Scene& scene) {
  const std::string& engine = scene.engine();
  if (!scene.add({SetBoundary{.engine = engine, .is_boundary = true}})) return false;
  const int steps = scene.source().between(3, 8);
  for (int i = 0; i < steps; ++i) {
    const bool is_made = scene.source().one_in(2) ? spike(scene) : scene.train();
    if (!is_made || !scene.add({Step{.engine = engine}})) return i > 1;
  }
  return true;
}

// An overflow in a window that is dropped.
bool spike_and_clear(Scene& scene) {
  return spike(scene) && scene.add({ZeroGrad{.engine = scene.engine()}});
}

// Managed and manual backwards of one window.
bool managed_and_manual(Scene& scene) {
  const auto first = scene.loss();
  const bool is_divided = !can_leave_undivided(scene) || !scene.source().one_in(2);
  if (!first || !scene.differentiate_managed(*first, {.scale_wrt_gas = is_divided})) return false;
  const auto second = scene.loss();
  return second && scene.differentiate_manually(*second);
}

bool can_mix(const Scene& scene) {
  return scene.state().supports_manual_backward();
}

}  // namespace

std::span<const Production> loss_scaling_productions() {
  constexpr std::uint32_t kScaling = tags(Tag::loss_scaling);
  static constexpr Production kRows[] = {
      {"set_loss_scale", 4, kScaling, Position::first_aside, can_own, set_loss_scale},
      {"clear_and_rescale", 3, kScaling, Position::first_aside, can_own, clear_and_rescale},
      {"scale_clear_differentiate", 4, kScaling, Position::training, can_scale,
       scale_clear_differentiate},
      {"scale_evaluate_differentiate", 4, kScaling, Position::training, can_scale_whole,
       scale_evaluate_differentiate, 2},
      {"scale_train_differentiate", 4, kScaling, Position::training, can_scale,
       scale_train_differentiate},
      {"spike", 9, kScaling | tags(Tag::worlds), Position::training, checks_spike, spike, 4},
      {"moving_scale", 9, kScaling, Position::first_aside, has_moving_scale, moving_scale, 2},
      {"unchecked_spike", 2, kScaling, Position::training, ignores_spike, spike, 2},
      {"spike_and_clear", 3, kScaling, Position::aside, can_spike, spike_and_clear},
      {"managed_and_manual", 3, kScaling | tags(Tag::accumulation), Position::training, can_mix,
       managed_and_manual}};
  return kRows;
}

}  // namespace zeroproof::program

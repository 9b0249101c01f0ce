// What a hook of the user does in the middle of a backward.
#include "props/program/productions/conditions.h"

namespace zeroproof::program {
namespace {

bool can_nest(const Scene& scene) {
  return has_plain_graphs(scene) && scene.is_managed_accumulation();
}

bool can_nest_own(const Scene& scene) {
  return can_nest(scene) && scene.is_stage(0, 2) && !scene.traits().has_checkpoints;
}

bool has_other(const Scene& scene) {
  return can_nest(scene) && scene.other_engine().has_value();
}

const EngineState& state_of_other(const Scene& scene) {
  return scene.state().engines.at(*scene.other_engine());
}

bool can_fail(const Scene& scene) {
  return has_other(scene) && !state_of_other(scene).window.has_local;
}

bool can_break(const Scene& scene) {
  return has_other(scene) && !state_of_other(scene).window.has_gradients;
}

bool can_join(const Scene& scene) {
  return can_fail(scene) && scene.is_stage(1, 2) && !scene.needs_scaler() &&
         !state_of_other(scene).scaler.is_needed() && scene.state().supports_manual_backward();
}

bool has_fp16_hooks(const Scene& scene) {
  return has_plain_graphs(scene) && scene.config().fp16.enabled;
}

bool can_save_inside(const Scene& scene) {
  return has_plain_graphs(scene) && scene.program().world.tensor == 1;
}

bool can_gather_inside(const Scene& scene) {
  const ModelTraits traits = scene.traits();
  const bool is_given_up = !scene.config().memory_efficient_linear || traits.has_checkpoints ||
                           traits.returns_weights || scene.is_autocast();
  return has_plain_graphs(scene) && !(scene.has_weights_in_context() && is_given_up);
}

// A forward with this hook, and an engine.backward of it.
bool train_managed(Scene& scene, Body body) {
  Forward forward = scene.forward();
  const auto module = scene.some_hooked_module(forward);
  if (!module) return false;
  forward.hooks.push_back(Scene::hook(Hook::At::gradient, *module, std::move(body)));
  return scene.add_forward(forward) && scene.differentiate_managed(forward.as);
}

bool step_in_backward(Scene& scene) {
  return scene.train_with_hook({{Step{.engine = scene.engine()}}});
}

bool save_in_backward(Scene& scene) {
  return scene.train_with_hook({{Save{.engine = scene.engine(), .tag = scene.new_tag()}}});
}

bool evaluate_in_backward(Scene& scene) {
  Forward evaluation = scene.forward();
  evaluation.mode = Forward::Mode::no_grad;
  return scene.train_with_hook({{evaluation}});
}

bool look_in_backward(Scene& scene) {
  const auto what =
      scene.source().one_in(2) ? Inspect::What::optimizer_state : Inspect::What::masters;
  return scene.train_with_hook({{Inspect{.engine = scene.engine(), .what = what}}});
}

bool foreign_in_backward(Scene& scene) {
  return scene.train_with_hook({{ForeignBackward{.throws = scene.source().one_in(2)}}});
}

bool rescale_in_backward(Scene& scene) {
  const double other = 2.0 * scene.engine_state().scaler.scale;
  return scene.train_with_hook({{SetScale{.engine = scene.engine(), .loss_scale = other}}});
}

Body round_of(Scene& scene, const std::string& engine, bool needs_grad) {
  const std::string value = scene.new_value();
  Forward forward{.engine = engine, .as = value};
  forward.inputs_need_grad = needs_grad;
  Backward backward;
  backward.engine = engine;
  backward.value = value;
  return {{forward}, {backward}};
}

bool own_round(Scene& scene) {
  return train_managed(scene, round_of(scene, scene.engine(), true));
}

bool other_round(Scene& scene) {
  return train_managed(scene, round_of(scene, *scene.other_engine(), scene.source().one_in(2)));
}

bool other_round_and_step(Scene& scene) {
  Body body = round_of(scene, *scene.other_engine(), true);
  body.push_back({Step{.engine = *scene.other_engine()}});
  return train_managed(scene, std::move(body));
}

// A round of the other engine that throws at its loss, and the user goes on.
bool other_fails(Scene& scene) {
  Body round = round_of(scene, *scene.other_engine(), true);
  auto& forward = std::get<Forward>(round.front().kind);
  forward.hooks.push_back(Scene::hook(Hook::At::loss, "", {{Raise{}}}));
  Catch caught;
  caught.body = std::move(round);
  return train_managed(scene, {{caught}});
}

// It has begun by then, and is cleared while the backward around goes on.
bool other_breaks(Scene& scene) {
  const std::string other = *scene.other_engine();
  std::string module;
  for (const Module* const owner : weight_owners(scene.program().model_of(other)))
    if (module.empty() && has_trained_weight(*owner)) module = owner->name;
  Body round = round_of(scene, other, true);
  auto& forward = std::get<Forward>(round.front().kind);
  forward.hooks.push_back(Scene::hook(Hook::At::gradient, module, {{Raise{}}}));
  Catch caught;
  caught.body = std::move(round);
  return train_managed(scene, {{caught}, {ZeroGrad{.engine = other}}});
}

// A loss of both engines, and in its backward one of the other alone, which throws.
bool joined_fails(Scene& scene) {
  const std::string other = *scene.other_engine();
  Body round = round_of(scene, other, true);
  auto& failing = std::get<Forward>(round.front().kind);
  failing.hooks.push_back(Scene::hook(Hook::At::loss, "", {{Raise{}}}));
  Catch caught;
  caught.body = std::move(round);
  Forward forward = scene.forward();
  const auto module = scene.some_hooked_module(forward);
  if (!module) return false;
  forward.hooks.push_back(Scene::hook(Hook::At::gradient, *module, {{caught}}));
  Forward second{.engine = other, .as = scene.new_value(), .inputs_need_grad = true};
  const std::string sum = scene.new_value();
  return scene.add_forward(forward) && scene.add({second}) &&
         scene.add({Sum{.values = {forward.as, second.as}, .as = sum}}) &&
         scene.differentiate_managed(sum);
}

// Weights change in a context, past the autograd.
bool change_in_backward(Scene& scene) {
  Block block{.kind = Block::Kind::gathered, .engine = scene.engine()};
  block.modifier = Block::Modifier::first;
  block.change = scene.source().one_in(2) ? Block::Change::by_all : Block::Change::by_modifier;
  return train_managed(scene, {{block}});
}

// In a backward of a graph with a checkpoint, deeper than one hook.
bool hook_in_hook(Scene& scene) {
  Body inner = round_of(scene, *scene.other_engine(), true);
  std::string module;
  for (const Module* const owner : weight_owners(scene.program().model_of(*scene.other_engine())))
    if (module.empty() && has_trained_weight(*owner)) module = owner->name;
  auto& forward = std::get<Forward>(inner.front().kind);
  forward.hooks.push_back(Scene::hook(Hook::At::gradient, module, {{ForeignBackward{}}}));
  return train_managed(scene, std::move(inner));
}

}  // namespace

std::span<const Production> nesting_productions() {
  constexpr std::uint32_t kNesting = tags(Tag::nesting);
  constexpr std::uint32_t kOthers = tags(Tag::nesting, Tag::engines);
  static constexpr Production kRows[] = {
      {"step_in_backward", 2, kNesting | tags(Tag::misuse), Position::training, has_plain_graphs,
       step_in_backward},
      {"save_in_backward", 2, kNesting, Position::training, can_save_inside, save_in_backward},
      {"evaluate_in_backward", 3, kNesting, Position::training, has_plain_graphs,
       evaluate_in_backward},
      {"look_in_backward", 3, kNesting, Position::training, has_plain_graphs, look_in_backward},
      {"foreign_in_backward", 3, kNesting, Position::training, has_plain_graphs,
       foreign_in_backward},
      {"rescale_in_backward", 3, kNesting | tags(Tag::loss_scaling), Position::training,
       has_fp16_hooks, rescale_in_backward},
      {"own_round", 4, kNesting, Position::training, can_nest_own, own_round},
      {"other_round", 5, kOthers, Position::training, has_other, other_round},
      {"other_round_and_step", 5, kOthers, Position::training, has_other, other_round_and_step},
      {"other_fails", 5, kOthers, Position::training, can_fail, other_fails},
      {"other_breaks", 5, kOthers, Position::training, can_break, other_breaks, 2},
      {"joined_fails", 5, kOthers, Position::training, can_join, joined_fails, 4},
      {"change_in_backward", 3, kNesting | tags(Tag::contexts), Position::training,
       can_gather_inside, change_in_backward},
      {"hook_in_hook", 4, kOthers, Position::training, has_other, hook_in_hook}};
  return kRows;
}

}  // namespace zeroproof::program

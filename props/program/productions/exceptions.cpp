// Passes that throw, and devices without memory.
#include "props/program/productions/conditions.h"

namespace zeroproof::program {
namespace {

// A backward that throws, which the user catches; then zero_grad, or not.
bool abort_with(Scene& scene, Forward& forward, bool clears) {
  if (!scene.add_forward(forward)) return false;
  const bool is_caught = scene.around({Catch{}}, [&] { return scene.differentiate(forward.as); });
  if (!is_caught) return false;
  const bool owes = scene.engine_state().owes == EngineState::Owes::zero_grad;
  return !(clears || owes) || scene.add({ZeroGrad{.engine = scene.engine()}});
}

Body raising() {
  Body body;
  body.push_back({Raise{}});
  return body;
}

bool abort_backward(Scene& scene) {
  Forward forward = scene.forward();
  const auto module = scene.some_hooked_module(forward);
  if (!module) return false;
  forward.hooks.push_back(Scene::hook(Hook::At::gradient, *module, raising()));
  return abort_with(scene, forward, scene.source().one_in(2));
}

bool abort_at_weight(Scene& scene) {
  Forward forward = scene.forward();
  const auto module = scene.some_owner(true);
  if (!module) return false;
  forward.hooks.push_back(Scene::hook(Hook::At::weight, *module, raising()));
  return abort_with(scene, forward, scene.source().one_in(2));
}

bool abort_at_loss(Scene& scene) {
  Forward forward = scene.forward();
  forward.hooks.push_back(Scene::hook(Hook::At::loss, "", raising()));
  return abort_with(scene, forward, scene.source().one_in(2));
}

// A graph is kept, and the backward over it throws; another one goes on.
bool abort_among_kept(Scene& scene) {
  const auto kept = scene.loss();
  if (!kept || !scene.differentiate(*kept, {.retain_graph = true})) return false;
  return abort_backward(scene) && scene.differentiate(*kept);
}

bool has_block_and_hooks(const Scene& scene) {
  return has_block(scene) && has_plain_graphs(scene);
}

bool has_fixed_scale(const Scene& scene) {
  return has_plain_graphs(scene) && scene.config().fp16.enabled &&
         !scene.engine_state().scaler.is_dynamic();
}

// Between two good ones, in a block.
bool abort_in_block(Scene& scene) {
  return scene.around({Block{.kind = *scene.some_block(), .engine = scene.engine()}}, [&] {
    if (!scene.train()) return false;
    Forward forward = scene.forward();
    const auto module = scene.some_hooked_module(forward);
    if (!module) return false;
    forward.hooks.push_back(Scene::hook(Hook::At::gradient, *module, raising()));
    return abort_with(scene, forward, false) && scene.train();
  });
}

// The scale of a window is asked to change after a backward of it that was aborted.
bool rescale_after_abort(Scene& scene) {
  if (!abort_backward(scene)) return false;
  const double other = 2.0 * scene.engine_state().scaler.scale;
  const SetScale set{.engine = scene.engine(), .loss_scale = other};
  return scene.add({set}) || scene.add_refused({set});
}

bool forward_with_raise(Scene& scene, Forward::Mode mode) {
  Forward forward = scene.forward();
  forward.mode = mode;
  const auto owners = weight_owners(scene.model());
  const auto which = scene.source().below(static_cast<std::uint32_t>(owners.size()));
  forward.hooks.push_back(Scene::hook(Hook::At::forward, owners[which]->name, raising()));
  return scene.around({Catch{}}, [&] { return scene.add_forward(forward); });
}

bool throw_in_forward(Scene& scene) {
  return forward_with_raise(scene, Forward::Mode::train);
}

bool throw_in_evaluation(Scene& scene) {
  return forward_with_raise(scene, Forward::Mode::no_grad);
}

bool throw_in_frame(Scene& scene) {
  const bool is_trained = scene.source().one_in(2);
  return forward_with_raise(scene, is_trained ? Forward::Mode::train : Forward::Mode::no_grad);
}

bool throw_in_block(Scene& scene) {
  const auto kind = *scene.some_block();
  return scene.around({Catch{}}, [&] {
    return scene.around({Block{.kind = kind, .engine = scene.engine()}},
                        [&] { return scene.train() && scene.add({Raise{}}); });
  });
}

// --- a device without memory --------------------------------------------------------------------

bool can_fall_short(const Scene& scene) {
  return scene.program().engines.size() == 1 && !scene.has_frames() && !scene.traits().has_tiles &&
         scene.program().world.tensor == 1;
}

bool short_of(Scene& scene, const std::function<bool()>& fill, bool clears = false) {
  const int most = scene.source().one_in(2) ? 31 : 7;
  OutOfMemory shortage{.allocation = scene.source().between(0, most), .clears = clears};
  return scene.around({shortage}, fill);
}

// The same work again and again, each time without memory at another place.
bool again(Scene& scene, bool (*make)(Scene&)) {
  if (!make(scene)) return false;
  for (int more = scene.source().between(0, 3); more > 0; --more)
    if (!scene.attempt([&] { return make(scene); })) break;
  return true;
}

bool evaluate_short(Scene& scene) {
  return short_of(scene, [&] {
    Forward forward = scene.forward();
    forward.mode = Forward::Mode::no_grad;
    return scene.add({forward});
  });
}

bool short_forward(Scene& scene) {
  std::string value;
  const bool is_run = short_of(scene, [&] {
    Forward forward = scene.forward();
    value = forward.as;
    return scene.add_forward(forward);
  });
  return is_run && scene.differentiate_all(value);
}

bool train_short(Scene& scene) {
  const bool clears =
      scene.is_stage(0, 1) && scene.is_managed_accumulation() && scene.is_boundary();
  return short_of(
      scene,
      [&] {
        Forward forward = scene.forward();
        return scene.add_forward(forward) && scene.differentiate(forward.as);
      },
      clears);
}

bool look_short(Scene& scene) {
  return short_of(scene, [&] {
    const Block block{.kind = Block::Kind::gathered, .engine = scene.engine()};
    return scene.around({block}, [&] {
      return scene.add({Inspect{.engine = scene.engine(), .what = Inspect::What::weights}});
    });
  });
}

bool ask_short(Scene& scene) {
  const auto what = static_cast<Inspect::What>(scene.source().below(3));
  return short_of(scene,
                  [&] { return scene.add({Inspect{.engine = scene.engine(), .what = what}}); });
}

bool short_evaluation(Scene& scene) {
  return again(scene, evaluate_short);
}

bool short_training(Scene& scene) {
  return again(scene, train_short);
}

bool short_context(Scene& scene) {
  return again(scene, look_short);
}

bool short_getter(Scene& scene) {
  return again(scene, ask_short);
}

bool can_gather_again(const Scene& scene) {
  return can_fall_short(scene) && is_partitioned(scene);
}

bool can_train_again(const Scene& scene) {
  return can_fall_short(scene) && (scene.state().ranks == 1 || !scene.is_stage(1, 2));
}

}  // namespace

std::span<const Production> exception_productions() {
  constexpr std::uint32_t kThrows = tags(Tag::exceptions);
  constexpr std::uint32_t kMemory = tags(Tag::memory);
  static constexpr Production kRows[] = {
      {"abort_backward", 5, kThrows, Position::aside, has_plain_graphs, abort_backward},
      {"abort_at_weight", 4, kThrows, Position::aside, has_plain_graphs, abort_at_weight},
      {"abort_at_loss", 3, kThrows, Position::aside, has_plain_graphs, abort_at_loss},
      {"abort_among_kept", 4, kThrows | tags(Tag::retained), Position::aside, has_plain_graphs,
       abort_among_kept},
      {"abort_in_block", 4, kThrows | tags(Tag::blocks), Position::training, has_block_and_hooks,
       abort_in_block},
      {"rescale_after_abort", 4, kThrows | tags(Tag::loss_scaling), Position::first_aside,
       has_fixed_scale, rescale_after_abort},
      {"throw_in_forward", 4, kThrows, Position::aside, has_no_tiles, throw_in_forward},
      {"throw_in_evaluation", 3, kThrows, Position::aside, has_no_tiles, throw_in_evaluation},
      {"throw_in_frame", 4, kThrows | tags(Tag::frames), Position::aside, has_frames,
       throw_in_frame, 2},
      {"throw_in_block", 4, kThrows | tags(Tag::blocks), Position::training, has_block,
       throw_in_block},
      {"short_evaluation", 4, kMemory, Position::aside, can_fall_short, short_evaluation},
      {"short_forward", 3, kMemory, Position::training, can_fall_short, short_forward},
      {"short_training", 5, kMemory, Position::training, can_train_again, short_training},
      {"short_context", 4, kMemory, Position::aside, can_gather_again, short_context, 2},
      {"short_getter", 4, kMemory, Position::aside, can_fall_short, short_getter, 2}};
  return kRows;
}

}  // namespace zeroproof::program

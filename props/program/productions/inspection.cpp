// What the user reads, and contexts that gather weights.
#include <algorithm>

#include "props/program/productions/conditions.h"

namespace zeroproof::program {
namespace {

bool can_discard(const Scene& scene) {
  return scene.has_weights_in_context() && !scene.is_autocast() &&
         !scene.engine_state().window.has_gradients;
}

bool look(Scene& scene) {
  return scene.add({Inspect{.engine = scene.engine(), .what = Inspect::What::weights}});
}

bool look_at_weights(Scene& scene) {
  return scene.around({context_of(scene)}, [&] { return look(scene); });
}

bool look_at_gradients(Scene& scene) {
  const Inspect inspect{.engine = scene.engine(), .what = Inspect::What::gradients};
  return scene.add({inspect}) && (!scene.source().one_in(3) || scene.add({inspect}));
}

bool look_at_masters(Scene& scene) {
  return scene.add({Inspect{.engine = scene.engine(), .what = Inspect::What::masters}}) &&
         scene.add({Inspect{.engine = scene.engine(), .what = Inspect::What::optimizer_state}});
}

bool has_partitioned(const Scene& scene) {
  return has_whole_contexts(scene) && scene.has_weights_in_context();
}

bool can_change(const Scene& scene) {
  return has_whole_contexts(scene) && !scene.engine_state().window.has_gradients;
}

bool look_in_block(Scene& scene) {
  const auto kind = *scene.some_block();
  constexpr Inspect::What kWhat[] = {Inspect::What::masters, Inspect::What::optimizer_state,
                                     Inspect::What::gradients};
  const Inspect::What what = kWhat[scene.source().below(3)];
  const bool is_first = scene.source().one_in(2);
  const auto inspect = [&] { return scene.add({Inspect{.engine = scene.engine(), .what = what}}); };
  return scene.around({Block{.kind = kind, .engine = scene.engine()}}, [&] {
    return (!is_first || inspect()) && scene.train() && (is_first || inspect());
  });
}

bool look_in_forward(Scene& scene) {
  Forward forward = scene.forward();
  const auto module = scene.some_hooked_module(forward);
  if (!module) return false;
  const auto what =
      scene.source().one_in(2) ? Inspect::What::optimizer_state : Inspect::What::masters;
  Body body;
  if (scene.source().one_in(3)) {
    body.push_back({ZeroGrad{.engine = scene.engine()}});
  } else {
    body.push_back({Inspect{.engine = scene.engine(), .what = what}});
  }
  forward.hooks.push_back(Scene::hook(Hook::At::forward, *module, std::move(body)));
  return scene.add_forward(forward) && scene.differentiate_all(forward.as);
}

Block changing(Scene& scene) {
  Block block = context_of(scene);
  block.modifier = scene.source().one_in(2) ? Block::Modifier::last : Block::Modifier::first;
  block.change = scene.source().one_in(2) ? Block::Change::by_all : Block::Change::by_modifier;
  return block;
}

bool change_weights(Scene& scene) {
  return scene.add({changing(scene)});
}

bool change_some_weights(Scene& scene) {
  Block block = changing(scene);
  const auto module = scene.some_owner(false);
  if (!module) return false;
  block.modules = {*module};
  return scene.add({block});
}

bool discard_change(Scene& scene) {
  return scene.around({Catch{}}, [&] {
    return scene.around({changing(scene)}, [&] { return scene.add({Raise{}}); });
  });
}

bool throw_in_context(Scene& scene) {
  return scene.around({Catch{}}, [&] {
    return scene.around({context_of(scene)}, [&] { return look(scene) && scene.add({Raise{}}); });
  });
}

bool evaluate_in_context(Scene& scene) {
  Forward forward = scene.forward();
  forward.mode = Forward::Mode::no_grad;
  return scene.around({context_of(scene)}, [&] { return scene.add({forward}) && look(scene); });
}

bool clear_in_context(Scene& scene) {
  return scene.around({context_of(scene)}, [&] {
    if (scene.source().one_in(2)) return look_at_masters(scene);
    return scene.add({ZeroGrad{.engine = scene.engine()}});
  });
}

// One half in a context of the other one; then all of them once more, which overlaps.
bool nested_contexts(Scene& scene) {
  const auto owners = weight_owners(scene.model());
  if (owners.size() < 2) return false;
  const std::size_t middle = owners.size() / 2;
  Block outer = context_of(scene);
  Block inner = context_of(scene);
  for (std::size_t i = 0; i < owners.size(); ++i)
    (i < middle ? outer : inner).modules.push_back(owners[i]->name);
  return scene.around({outer}, [&] {
    return scene.add({inner}) &&
           (!scene.source().one_in(2) || scene.add_refused({context_of(scene)}));
  });
}

bool hold_nan(Scene& scene) {
  Block block = context_of(scene);
  block.change = Block::Change::holds_nan;
  return scene.add({block});
}

// A context around the backward, whose weights one rank gives to all.
bool backward_in_context(Scene& scene) {
  const auto value = scene.loss();
  Block block = context_of(scene);
  if (scene.source().one_in(2)) block.modifier = Block::Modifier::first;
  return value &&
         scene.around({block}, [&] { return scene.differentiate_all(*value) && look(scene); });
}

bool look_before_backward(Scene& scene) {
  const auto value = scene.loss();
  return value && look_at_weights(scene) && scene.differentiate_all(*value);
}

bool look_between_backwards(Scene& scene) {
  const auto value = scene.loss();
  return value && scene.differentiate(*value, {.retain_graph = true}) && look_at_weights(scene) &&
         scene.differentiate_all(*value);
}

bool has_no_frames(const Scene& scene) {
  return !scene.has_frames();
}

bool autocast_region(Scene& scene) {
  const bool is_own = scene.config().torch_autocast.enabled;
  const auto kind = is_own ? Block::Kind::other_autocast : Block::Kind::autocast;
  return scene.around({Block{.kind = kind, .engine = scene.engine()}},
                      [&] { return scene.train(); });
}

bool can_retain(const Scene& scene) {
  return !scene.has_frames() && !scene.traits().has_tiles;
}

}  // namespace

std::span<const Production> inspection_productions() {
  constexpr std::uint32_t kContexts = tags(Tag::contexts);
  constexpr std::uint32_t kReads = tags(Tag::inspection);
  static constexpr Production kRows[] = {
      {"look_at_weights", 3, kContexts, Position::aside, always, look_at_weights},
      {"look_at_gradients", 4, kReads, Position::aside, always, look_at_gradients},
      {"look_at_gradients_before_step", 3, kReads, Position::before_step, always,
       look_at_gradients},
      {"look_at_masters", 3, kReads, Position::aside, always, look_at_masters},
      {"look_in_block", 3, kReads | tags(Tag::blocks), Position::training, has_block, look_in_block,
       2},
      {"look_in_forward", 3, kReads, Position::training, has_plain_graphs, look_in_forward},
      {"change_weights", 3, kContexts, Position::first_aside, can_change, change_weights},
      {"change_some_weights", 3, kContexts, Position::first_aside, can_change, change_some_weights},
      {"discard_change", 3, kContexts | tags(Tag::exceptions), Position::first_aside, can_discard,
       discard_change},
      {"throw_in_context", 3, kContexts | tags(Tag::exceptions), Position::aside,
       has_whole_contexts, throw_in_context},
      {"evaluate_in_context", 3, kContexts, Position::aside, has_whole_contexts,
       evaluate_in_context},
      {"clear_in_context", 2, kContexts, Position::aside, has_whole_contexts, clear_in_context},
      {"nested_contexts", 3, kContexts, Position::aside, has_partitioned, nested_contexts, 2},
      {"hold_nan", 4, kContexts, Position::first_aside, checks_contexts, hold_nan, 2},
      {"backward_in_context", 4, kContexts, Position::training, has_partitioned,
       backward_in_context},
      {"look_before_backward", 3, kContexts, Position::training, always, look_before_backward},
      {"look_between_backwards", 4, kContexts | tags(Tag::retained), Position::training, can_retain,
       look_between_backwards},
      {"autocast_region", 3, kReads, Position::training, has_no_frames, autocast_region}};
  return kRows;
}

}  // namespace zeroproof::program

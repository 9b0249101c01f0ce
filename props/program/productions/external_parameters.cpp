// Weights that are used past their module or past the engine, and those that are frozen.
#include "props/program/productions/conditions.h"

namespace zeroproof::program {
namespace {

bool is_one_engine(const Scene& scene) {
  return scene.program().engines.size() == 1 && !scene.traits().has_tiles && !scene.has_frames() &&
         scene.config().stage3_module_granularity_threshold == 0;
}

bool register_external(Scene& scene) {
  const auto module = scene.some_owner(false);
  return module && scene.add({RegisterExternal{.engine = scene.engine(), .module = *module}});
}

std::optional<std::string> call_of(Scene& scene, bool in_checkpoint) {
  const auto module = scene.some_owner(true);
  if (!module) return std::nullopt;
  CallModule call{.engine = scene.engine(), .module = *module, .as = scene.new_value()};
  call.in_checkpoint = in_checkpoint;
  if (!scene.add({call})) return std::nullopt;
  return call.as;
}

// A term of the loss that reaches a module past the engine's forward.
bool bypass(Scene& scene) {
  const auto value = scene.loss();
  const auto past = call_of(scene, scene.source().one_in(4));
  const std::string sum = scene.new_value();
  return value && past && scene.add({Sum{.values = {*value, *past}, .as = sum}}) &&
         scene.differentiate(sum);
}

// A linear function of the weight alone, in a context that is over by the backward.
bool bypass_of_weight(Scene& scene) {
  const auto value = scene.loss();
  const auto module = scene.some_owner(true);
  if (!value || !module) return false;
  CallModule call{.engine = scene.engine(), .module = *module, .as = scene.new_value()};
  call.uses_weight_alone = true;
  Block context{.kind = Block::Kind::gathered, .engine = scene.engine()};
  if (scene.source().one_in(2)) context.modules = {*module};
  const std::string sum = scene.new_value();
  return scene.around({context}, [&] { return scene.add({call}); }) &&
         scene.add({Sum{.values = {*value, call.as}, .as = sum}}) && scene.differentiate(sum);
}

bool can_leave(const Scene& scene) {
  return is_one_engine(scene) && scene.state().supports_manual_backward();
}

// A manual backward of a loss that no output of the engine is in; alone, or after others.
bool past_engine(Scene& scene) {
  const bool is_alone = scene.source().one_in(2);
  if (!is_alone && !scene.train()) return false;
  const auto past = call_of(scene, scene.source().one_in(3));
  return past && scene.differentiate_manually(*past);
}

bool past_engine_twice(Scene& scene) {
  if (!scene.train()) return false;
  const auto first = call_of(scene, true);
  const auto second = call_of(scene, scene.source().one_in(2));
  const std::string sum = scene.new_value();
  return first && second && scene.add({Sum{.values = {*first, *second}, .as = sum}}) &&
         scene.differentiate_manually(sum);
}

bool has_external(const Scene& scene) {
  return scene.traits().has_external_uses;
}

// This forward does not read the weight that others read; of one rank, where ranks may differ.
bool unread_weight(Scene& scene) {
  std::vector<std::string> uses;
  for (const Module* const node : nodes_of(scene.model()))
    if (std::holds_alternative<ExternalUse>(node->kind)) uses.push_back(node->name);
  const auto which = scene.source().below(static_cast<std::uint32_t>(uses.size()));
  Skip skip{.module = uses[which]};
  if (scene.source().one_in(2)) skip.rank = scene.source().between(0, scene.state().ranks - 1);
  Forward forward = scene.forward();
  forward.skips.push_back(skip);
  return scene.add_forward(forward) && scene.differentiate_all(forward.as);
}

bool can_freeze(const Scene& scene) {
  return is_one_engine(scene) && scene.model().losses() == 1 &&
         weight_owners(scene.model()).size() > 1;
}

// Freezes a part of a model for a while, as in partial training.
bool freeze_for_a_while(Scene& scene) {
  const auto module = scene.some_owner(true);
  if (!module) return false;
  Freeze freeze{.engine = scene.engine(), .module = *module};
  if (!scene.add({freeze}) || !scene.train()) return false;
  freeze.is_trained = true;
  return scene.add({freeze});
}

bool has_experts(const Scene& scene) {
  return scene.traits().has_experts && scene.has_weights_in_context();
}

std::string experts_of(const Scene& scene) {
  for (const Module* const node : nodes_of(scene.model()))
    if (std::holds_alternative<Experts>(node->kind)) return node->name;
  return {};
}

// The hooks of a leaf module are made again between a forward and its backward.
bool leaf_again(Scene& scene) {
  const auto value = scene.loss();
  return value && scene.add({SetLeaf{.engine = scene.engine(), .module = experts_of(scene)}}) &&
         scene.differentiate_all(*value);
}

}  // namespace

std::span<const Production> external_productions() {
  constexpr std::uint32_t kExternal = tags(Tag::external);
  constexpr std::uint32_t kParameters = tags(Tag::parameters);
  static constexpr Production kRows[] = {
      {"register_external", 3, kExternal, Position::aside, is_one_engine, register_external},
      {"bypass", 4, kExternal, Position::training, is_one_engine, bypass},
      {"bypass_of_weight", 4, kExternal | tags(Tag::contexts), Position::training, is_one_engine,
       bypass_of_weight, 2},
      {"past_engine", 4, kExternal, Position::training, can_leave, past_engine, 2},
      {"past_engine_twice", 4, kExternal | tags(Tag::recompute), Position::training, can_leave,
       past_engine_twice, 4},
      {"unread_weight", 5, kExternal, Position::training, has_external, unread_weight, 8},
      {"freeze_for_a_while", 4, kParameters, Position::training, can_freeze, freeze_for_a_while, 6},
      {"leaf_again", 4, tags(Tag::experts), Position::training, has_experts, leaf_again, 2}};
  return kRows;
}

}  // namespace zeroproof::program

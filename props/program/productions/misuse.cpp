// What the engine refuses: docs/spec/zero/errors.md, a production for each way to come there.
#include <array>
#include <cmath>
#include <limits>

#include "props/program/productions/conditions.h"

namespace zeroproof::program {
namespace {

Statement step_of(const Scene& scene) {
  return {Step{.engine = scene.engine()}};
}

// The block that there is in this stage.
Block::Kind block_of_stage(const Scene& scene) {
  return scene.is_stage(0, 1) ? Block::Kind::no_sync : Block::Kind::coalesce;
}

bool has_some_block(const Scene& scene) {
  return scene.is_stage(0, 1) || scene.is_managed_accumulation();
}

bool returns_vector(const Scene& scene) {
  return scene.model().returns_activations;
}

bool has_gradients(const Scene& scene) {
  return scene.engine_state().window.has_gradients;
}

bool can_move(const Scene& scene) {
  return scene.has_weights_in_context() && !scene.is_autocast() && scene.is_alone() &&
         !scene.has_frames();
}

bool can_outdate(const Scene& scene) {
  const ModelTraits traits = scene.traits();
  return can_move(scene) && !scene.engine_state().window.has_gradients && !traits.has_experts &&
         !traits.has_checkpoints && !traits.has_external_uses && !traits.returns_weights &&
         !traits.has_tiles && scene.model().losses() == 1 &&
         scene.config().memory_efficient_linear &&
         scene.config().stage3_module_granularity_threshold == 0;
}

bool step_in_block(Scene& scene) {
  return scene.around({block_of(scene, block_of_stage(scene))},
                      [&] { return scene.add_refused(step_of(scene)); });
}

bool nested_no_sync(Scene& scene) {
  const Statement inner{block_of(scene, Block::Kind::no_sync)};
  if (scene.is_stage(2, 3)) return scene.add_refused(inner);
  return scene.around({block_of(scene, Block::Kind::no_sync)},
                      [&] { return scene.add_refused(inner); });
}

bool nested_coalesce(Scene& scene) {
  const Statement inner{block_of(scene, Block::Kind::coalesce)};
  if (scene.is_stage(0, 0) || !scene.is_managed_accumulation()) return scene.add_refused(inner);
  return scene.around({block_of(scene, block_of_stage(scene))},
                      [&] { return scene.add_refused(inner); });
}

bool backward_of(Scene& scene, const std::string& value) {
  Backward backward;
  backward.engine = scene.engine();
  backward.value = value;
  const bool is_refused = scene.add_refused({backward});
  if (!is_refused || !scene.source().one_in(2)) return is_refused;
  return scene.add_refused(
      {Scale{.engine = scene.engine(), .value = value, .as = scene.new_value()}});
}

bool backward_of_nothing(Scene& scene) {
  return backward_of(scene, "");
}

bool backward_of_vector(Scene& scene) {
  const auto value = scene.loss();
  return value && backward_of(scene, *value + ".h") && scene.differentiate_all(*value);
}

bool backward_without_graph(Scene& scene) {
  Forward forward = scene.forward();
  forward.mode = Forward::Mode::no_grad;
  return scene.add({forward}) && backward_of(scene, forward.as);
}

bool is_unmanaged(const Scene& scene) {
  return !scene.is_managed_accumulation();
}

bool boundary_of_unmanaged(Scene& scene) {
  return scene.add_refused(
      {SetBoundary{.engine = scene.engine(), .is_boundary = scene.source().one_in(2)}});
}

bool can_be_unscaled(const Scene& scene) {
  return scene.needs_scaler() && scene.state().supports_manual_backward() &&
         scene.program().engines.size() == 1 && has_plain_graphs(scene);
}

bool refused_manual(Scene& scene) {
  const auto value = scene.loss();
  Backward backward;
  if (!value) return false;
  backward.value = *value;
  return scene.add_refused({backward});
}

// A loss that is refused a scale has none.
bool unscaled_again(Scene& scene) {
  return scene.add_refused({Scale{.engine = scene.engine(), .as = scene.new_value()}}) &&
         refused_manual(scene);
}

bool has_no_manual(const Scene& scene) {
  return !scene.state().supports_manual_backward() && has_plain_graphs(scene);
}

bool manual_past_engine(Scene& scene) {
  const auto module = scene.some_owner(true);
  if (!module) return false;
  const CallModule call{.engine = scene.engine(), .module = *module, .as = scene.new_value()};
  Backward backward;
  backward.value = call.as;
  return scene.add({call}) && scene.add_refused({backward});
}

bool is_joined_below_stage1(const Scene& scene) {
  return scene.is_stage(0, 0) && scene.other_engine();
}

bool loss_of_other(Scene& scene) {
  const auto value = scene.loss();
  Backward backward;
  if (!value) return false;
  backward.engine = *scene.other_engine();
  backward.value = *value;
  return scene.add_refused({backward});
}

bool has_scaled_other(const Scene& scene) {
  const auto other = scene.other_engine();
  return other && scene.state().engines.at(*other).scaler.is_needed() && !scene.needs_scaler() &&
         scene.state().supports_manual_backward();
}

// A loss of both, of which the other one's was not scaled.
bool unscaled_other(Scene& scene) {
  const std::string own = scene.engine();
  const auto first = scene.loss();
  scene.choose_engine(*scene.other_engine());
  const auto second = scene.loss();
  scene.choose_engine(own);
  if (!first || !second) return false;
  Backward backward;
  backward.engine = own;
  backward.value = scene.new_value();
  return scene.add({Sum{.values = {*first, *second}, .as = backward.value}}) &&
         scene.add_refused({backward}) && scene.zero_grad_all();
}

bool wrong_loss_scale(Scene& scene) {
  constexpr std::array kScales = {0.0, -2.0, std::numeric_limits<double>::infinity(),
                                  std::numeric_limits<double>::quiet_NaN()};
  return scene.add_refused(
      {SetScale{.engine = scene.engine(), .loss_scale = kScales.at(scene.source().below(4))}});
}

// Another one than that of the window's gradients.
bool late_loss_scale(Scene& scene) {
  return scene.add_refused(
      {SetScale{.engine = scene.engine(), .loss_scale = 2.0 * scene.engine_state().scaler.scale}});
}

bool late_loss_scale_before_backward(Scene& scene) {
  const auto value = scene.loss();
  return value && late_loss_scale(scene) && scene.differentiate_all(*value);
}

bool wrong_learning_rate(Scene& scene) {
  SetLearningRate set{.engine = scene.engine(), .learning_rate = -0.5};
  if (scene.source().one_in(2)) {
    set.group = scene.program().engine(scene.engine()).parameter_groups;
    set.learning_rate = 0.5;
  }
  return scene.add_refused({set});
}

bool is_starved(const Scene& scene) {
  return scene.traits().has_experts && scene.has_weights_in_context();
}

bool unfed_leaf(Scene& scene) {
  Forward forward = scene.forward();
  forward.inputs_need_grad = false;
  if (!scene.add({forward})) return false;
  Backward backward;
  backward.engine = scene.engine();
  backward.value = forward.as;
  return scene.add_refused({backward}) && scene.add({ZeroGrad{.engine = scene.engine()}});
}

bool moved_weight(Scene& scene) {
  Block block = block_of(scene, Block::Kind::gathered);
  block.modifier = Block::Modifier::first;
  block.change = Block::Change::moves;
  return scene.add_refused({block});
}

bool unannounced_change(Scene& scene) {
  Block block = block_of(scene, Block::Kind::gathered);
  block.change = Block::Change::unannounced;
  return scene.add_refused({block});
}

bool overlapping_contexts(Scene& scene) {
  const Block all = block_of(scene, Block::Kind::gathered);
  Block some = all;
  if (const auto module = scene.some_owner(false)) some.modules = {*module};
  const bool is_wider_inside = scene.source().one_in(2);
  return scene.around({is_wider_inside ? some : all},
                      [&] { return scene.add_refused({is_wider_inside ? all : some}); });
}

// Weights change after a forward, whose backward is refused.
bool outdated_graph(Scene& scene) {
  Forward forward = scene.forward();
  Block block = block_of(scene, Block::Kind::gathered);
  block.modifier = Block::Modifier::first;
  block.change = Block::Change::by_all;
  Backward backward;
  backward.engine = scene.engine();
  backward.value = forward.as;
  return scene.add_forward(forward) && scene.add({block}) && scene.add_refused({backward});
}

bool ask_to_capture(Scene& scene) {
  return scene.add_refused({block_of(scene, Block::Kind::capture)});
}

}  // namespace

std::span<const Production> misuse_productions() {
  constexpr std::uint32_t kMisuse = tags(Tag::misuse);
  constexpr std::uint32_t kScaling = tags(Tag::misuse, Tag::loss_scaling);
  constexpr std::uint32_t kContexts = tags(Tag::misuse, Tag::contexts);
  constexpr std::uint32_t kEngines = tags(Tag::misuse, Tag::engines);
  static constexpr Production kRows[] = {
      {"step_in_block", 2, kMisuse, Position::aside, has_some_block, step_in_block},
      {"nested_no_sync", 2, kMisuse, Position::aside, always, nested_no_sync},
      {"nested_coalesce", 2, kMisuse, Position::aside, always, nested_coalesce},
      {"backward_of_nothing", 2, kMisuse, Position::aside, always, backward_of_nothing},
      {"backward_of_vector", 3, kMisuse, Position::training, returns_vector, backward_of_vector},
      {"backward_without_graph", 2, kMisuse, Position::aside, has_plain_graphs,
       backward_without_graph},
      {"boundary_of_unmanaged", 3, kMisuse, Position::aside, is_unmanaged, boundary_of_unmanaged,
       3},
      {"unscaled_manual", 3, kScaling, Position::aside, can_be_unscaled, refused_manual},
      {"unscaled_again", 3, kScaling, Position::aside, can_be_unscaled, unscaled_again},
      {"manual_backward", 3, kMisuse, Position::aside, has_no_manual, refused_manual, 3},
      {"manual_past_engine", 3, kMisuse, Position::aside, has_no_manual, manual_past_engine, 6},
      {"loss_of_other", 4, kEngines, Position::aside, is_joined_below_stage1, loss_of_other, 4},
      {"unscaled_other", 4, kEngines, Position::aside, has_scaled_other, unscaled_other, 6},
      {"wrong_loss_scale", 2, kScaling, Position::aside, always, wrong_loss_scale},
      {"late_loss_scale", 3, kScaling, Position::before_step, has_gradients, late_loss_scale},
      {"late_loss_scale_before_backward", 3, kScaling, Position::training, has_gradients,
       late_loss_scale_before_backward},
      {"wrong_learning_rate", 2, kMisuse, Position::aside, always, wrong_learning_rate},
      {"unfed_leaf", 6, kMisuse | tags(Tag::experts), Position::aside, is_starved, unfed_leaf, 24},
      {"moved_weight", 3, kContexts, Position::aside, can_move, moved_weight, 3},
      {"unannounced_change", 3, kContexts, Position::aside, checks_contexts, unannounced_change, 2},
      {"overlapping_contexts", 5, kContexts, Position::aside, is_partitioned, overlapping_contexts},
      {"outdated_graph", 4, kContexts, Position::first_aside, can_outdate, outdated_graph, 4},
      {"capture", 2, kMisuse, Position::aside, always, ask_to_capture}};
  return kRows;
}

}  // namespace zeroproof::program

// Micro-batches, boundaries, and blocks that put reductions off.
#include "props/program/productions/conditions.h"

namespace zeroproof::program {
namespace {

bool is_managed(const Scene& scene) {
  return scene.is_managed_accumulation();
}

bool plain_training(Scene& scene) {
  return scene.train();
}

// Most other productions have no place beside these two.
bool has_tiles(const Scene& scene) {
  return scene.traits().has_tiles;
}

bool has_leaves(const Scene& scene) {
  return scene.config().stage3_module_granularity_threshold > 0;
}

bool two_rounds(Scene& scene) {
  return scene.train() && scene.train();
}

bool undivided(Scene& scene) {
  const auto value = scene.loss();
  return value && scene.differentiate_managed(*value, {.scale_wrt_gas = false});
}

bool keeps_dimension(Scene& scene) {
  const auto value = scene.loss();
  return value && scene.differentiate(*value, {.keeps_dimension = true});
}

// A micro-batch that is left out.
bool rest(Scene&) {
  return true;
}

bool can_hold(const Scene& scene) {
  return scene.is_stage(0, 1);
}

bool is_inside_window(const Scene& scene) {
  return scene.is_managed_accumulation() && !scene.is_boundary();
}

bool can_wait(const Scene& scene) {
  return scene.is_stage(0, 1) && !scene.is_boundary();
}

bool has_block_and_other(const Scene& scene) {
  return has_block(scene) && scene.other_engine();
}

bool is_whole(const Scene& scene) {
  return scene.is_stage(0, 2);
}

bool no_sync_round(Scene& scene) {
  if (!scene.around({block_of(scene, Block::Kind::no_sync)}, [&] { return scene.train(); }))
    return false;
  const bool is_last = scene.is_boundary() && scene.is_managed_accumulation();
  return !is_last || scene.train();
}

bool no_sync_forward(Scene& scene) {
  std::optional<std::string> value;
  const bool is_run = scene.around({block_of(scene, Block::Kind::no_sync)}, [&] {
    value = scene.loss();
    return value.has_value();
  });
  return is_run && scene.differentiate_all(*value);
}

bool no_sync_backwards(Scene& scene) {
  const auto value = scene.loss();
  return value && scene.around({block_of(scene, Block::Kind::no_sync)},
                               [&] { return scene.differentiate_all(*value); });
}

bool can_coalesce(const Scene& scene) {
  return scene.is_stage(1, 3) && scene.is_managed_accumulation();
}

bool coalesced(Scene& scene) {
  return scene.around({block_of(scene, Block::Kind::coalesce)}, [&] {
    return scene.train() && (!scene.source().one_in(2) || scene.train());
  });
}

bool coalesced_backwards(Scene& scene) {
  const auto value = scene.loss();
  return value && scene.around({block_of(scene, Block::Kind::coalesce)},
                               [&] { return scene.differentiate_all(*value); });
}

// What a block has got is cleared inside it.
bool clear_in_block(Scene& scene) {
  return scene.around({block_of(scene, *scene.some_block())}, [&] {
    return scene.train() && scene.add({ZeroGrad{.engine = scene.engine()}}) && scene.train();
  });
}

bool block_beside_block(Scene& scene) {
  const auto kind = *scene.some_block();
  return scene.around({Block{.kind = kind, .engine = *scene.other_engine()}}, [&] {
    return scene.around({block_of(scene, kind)}, [&] { return scene.train(); });
  });
}

bool train_and_clear(Scene& scene) {
  return scene.train() && scene.add({ZeroGrad{.engine = scene.engine()}});
}

bool set_boundary(Scene& scene) {
  const bool is_boundary = scene.is_boundary() != scene.source().one_in(3);
  return scene.add({SetBoundary{.engine = scene.engine(), .is_boundary = is_boundary}});
}

// A window of two micro-batches, whatever the configuration says.
bool own_boundaries(Scene& scene) {
  const std::string& engine = scene.engine();
  return scene.add({SetBoundary{.engine = engine, .is_boundary = false}}) && scene.train() &&
         scene.add({Step{.engine = engine}}) &&
         scene.add({SetBoundary{.engine = engine, .is_boundary = true}});
}

bool set_gradients(Scene& scene) {
  return scene.add({SetGrad{.engine = scene.engine()}}) &&
         scene.add({ZeroGrad{.engine = scene.engine()}});
}

bool set_learning_rate(Scene& scene) {
  constexpr double kRates[] = {0.25, 0.5, 0.0, 0.0078125};
  SetLearningRate set{.engine = scene.engine(), .learning_rate = kRates[scene.source().below(4)]};
  const int groups = scene.program().engine(scene.engine()).parameter_groups;
  if (scene.source().one_in(2)) set.group = scene.source().between(0, groups - 1);
  return scene.add({set});
}

// The next forward comes before the step of this micro-batch.
bool forward_ahead(Scene& scene) {
  Forward forward = scene.forward();
  if (!scene.add_forward(forward)) return false;
  scene.ahead()[scene.engine()] = forward.as;
  return true;
}

}  // namespace

std::span<const Production> accumulation_productions() {
  constexpr std::uint32_t kBlocks = tags(Tag::blocks);
  constexpr std::uint32_t kWindows = tags(Tag::accumulation);
  static constexpr Production kRows[] = {
      {"plain_training", 1, tags(Tag::plain), Position::training, always, plain_training},
      {"tiled_training", 3, tags(Tag::tiles), Position::training, has_tiles, plain_training, 5},
      {"leaf_training", 3, kWindows, Position::training, has_leaves, plain_training, 8},
      {"two_rounds", 4, kWindows, Position::training, always, two_rounds},
      {"undivided", 5, kWindows, Position::training, can_leave_undivided, undivided},
      {"keeps_dimension", 2, kWindows, Position::training, always, keeps_dimension},
      {"rest", 2, kWindows, Position::training, always, rest},
      {"no_sync_round", 4, kBlocks, Position::training, can_hold, no_sync_round},
      {"no_sync_forward", 2, kBlocks, Position::training, can_hold, no_sync_forward, 3},
      {"no_sync_backwards", 3, kBlocks, Position::training, can_wait, no_sync_backwards, 2},
      {"coalesced", 4, kBlocks, Position::training, can_coalesce, coalesced},
      {"coalesced_backwards", 3, kBlocks, Position::training, can_coalesce, coalesced_backwards},
      {"clear_in_block", 3, kBlocks, Position::training, has_block, clear_in_block},
      {"block_beside_block", 6, kBlocks | tags(Tag::engines), Position::training,
       has_block_and_other, block_beside_block},
      {"train_and_clear", 3, kWindows, Position::aside, always, train_and_clear},
      {"set_boundary", 2, kWindows, Position::first_aside, is_managed, set_boundary},
      {"own_boundaries", 3, kWindows, Position::first_aside, is_managed, own_boundaries},
      {"set_gradients", 2, tags(Tag::parameters), Position::aside, is_whole, set_gradients},
      {"set_learning_rate", 2, kWindows, Position::aside, always, set_learning_rate},
      {"forward_ahead", 4, kWindows | tags(Tag::retained), Position::before_step, is_inside_window,
       forward_ahead}};
  return kRows;
}

}  // namespace zeroproof::program

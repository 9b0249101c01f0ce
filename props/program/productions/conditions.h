#pragma once

#include "props/program/scene.h"

namespace zeroproof::program {

// Where several productions may stand.
inline bool always(const Scene&) {
  return true;
}
// Graphs may be kept, and have hooks of the user.
inline bool has_plain_graphs(const Scene& scene) {
  return !scene.has_frames() && !scene.traits().has_tiles;
}
inline bool has_no_tiles(const Scene& scene) {
  return !scene.traits().has_tiles;
}
inline bool has_frames(const Scene& scene) {
  return scene.has_frames();
}
inline bool has_block(const Scene& scene) {
  return scene.some_block().has_value();
}
// A context has something to gather.
inline bool is_partitioned(const Scene& scene) {
  return scene.has_weights_in_context();
}
// What a context gathers is as it is kept.
inline bool has_whole_contexts(const Scene& scene) {
  return !(scene.is_autocast() && scene.has_weights_in_context());
}
inline bool checks_contexts(const Scene& scene) {
  return scene.has_weights_in_context() && scene.config().enable_sanity_checks &&
         !scene.is_autocast();
}

// A backward may be asked not to divide by the accumulation steps.
inline bool can_leave_undivided(const Scene& scene) {
  const bool divides = scene.config().gradient_accumulation_steps > 1;
  return divides && scene.is_alone() && !scene.traits().has_tiles;
}

inline Block context_of(const Scene& scene) {
  return {.kind = Block::Kind::gathered, .engine = scene.engine()};
}
inline Block block_of(const Scene& scene, Block::Kind kind) {
  return {.kind = kind, .engine = scene.engine()};
}

}  // namespace zeroproof::program

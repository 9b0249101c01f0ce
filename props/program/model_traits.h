#pragma once

#include "props/program/state.h"

namespace zeroproof::program {

// What a model contains, as far as rules ask.
struct ModelTraits {
  bool has_checkpoints = false;
  bool has_tiles = false;
  bool has_experts = false;
  int experts = 0;
  bool has_external_uses = false;
  bool has_own_weights = false;
  bool has_tied_weights = false;
  bool returns_weights = false;
  bool has_watches = false;
  bool has_customs = false;
  bool is_plain = true;  // Linear, Custom, Sequential and Shared alone, without watches
};
ModelTraits traits_of(const Model& model);

// Whether a hook of the user may stand at what it returns.
bool can_hook(const Module& module);
int weight_dimensions(const Module& owner);
int input_dimensions(const Module& owner);

// Whether some ranks may leave out an external use: each has some gradient for its weight, and the
// same modules in its backward.
bool may_be_read_by_some(const State& state, const Forward& forward, const Module& use);
// Whether a backward is refused, and no more, where experts get no gradient.
bool may_starve_leaf(const State& state, const Forward& forward);

}  // namespace zeroproof::program

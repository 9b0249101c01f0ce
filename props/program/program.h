#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "props/program/model_tree.h"
#include "props/program/statement.h"
#include "zeroproof/engine/zero_config.h"

namespace zeroproof::program {

// A training job as data: who runs it, how engines are configured, what they train, what the user
// does. docs/reference/program.md; JSON schema zeroproof.program/1. Plain data, equal by value.

struct World {
  static constexpr int kMost = 6;  // ranks of a simulated world

  int ranks = 1;     // of different data
  int tensor = 1;    // each of them is a tensor-parallel group of so many, which train the same
  int sequence = 1;  // so many ranks share a sequence, of which each has a part of the loss
  bool ranks_differ = false;  // in their first weights, until engines take over rank 0's
  // What the autograd of the job can be asked (docs/reference/policies.md).
  enum class Autograd : std::uint8_t { full, no_callback, no_counts };
  Autograd autograd = Autograd::full;
  bool skips_frames = false;  // stage 3 under DeepCompile, every frame skipped

  int size() const { return ranks * tensor; }
  friend bool operator==(const World&, const World&) = default;
};

// What contributions to gradients look like.
struct Data {
  enum class Mode : std::uint8_t {
    exact,      // sums are exact in every order; every element has contributions of its own
    magnitude,  // as large as the dtypes on the way allow, or as small
    real,       // random numbers that depend on the weights; compared within a bound
    identity    // a small whole number of its own for each contribution, so that all of many fit
  };
  Mode mode = Mode::exact;
  std::uint32_t seed = 0;
  // Of `magnitude`, which limit; rules/magnitudes.cpp says where each has room. 0: fp16: the sum of
  // all ranks is too large, their mean is not. 1: fp16: only scaled gradients are large enough.
  // 2: bf16: the sum of ranks that share a sequence needs float32. 3: a narrow wire has room for
  // divided gradients alone. 4: the sums of a window need more bits than bf16 has.
  int magnitude = 0;
  // Whether no sum of contributions is rounded, whatever its order.
  bool is_exact() const { return mode == Mode::exact || mode == Mode::identity; }
  friend bool operator==(const Data&, const Data&) = default;
};

struct EngineSpec {
  std::string name;
  std::string model;
  int parameter_groups = 1;   // its parameters go to them in turns
  bool lists_frozen = false;  // the groups list frozen parameters, too
  std::optional<double> custom_loss_scale = std::nullopt;
  int grows_in = 0;  // torch.amp.GradScaler: so many good steps before it grows; 0: as it begins
  // The engine is configured with the ds_config.json that its configuration is written as.
  bool reads_document = false;
  friend bool operator==(const EngineSpec&, const EngineSpec&) = default;
};

struct Program {
  World world;
  ZeroConfig config;  // of every engine
  Data data;
  std::vector<Model> models;
  std::vector<EngineSpec> engines;
  Body body;

  const Model& model_of(const std::string& engine) const;  // ZP_CHECK: it is there
  const EngineSpec& engine(const std::string& name) const;
};

// Compares configurations by their document.
bool operator==(const Program& a, const Program& b);

}  // namespace zeroproof::program

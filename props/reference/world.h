#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/engine/zero_config.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::reference {

// Whose rules a run follows: docs/spec/zero says "Ours" where our engine differs from DeepSpeed.
enum class Dialect : std::uint8_t { ours, upstream };

// One row of the table of parameters; the row number is the parameter's id (docs/spec/zero 3.1).
struct Parameter {
  std::string name;  // as events have it
  std::int64_t elements = 0;
  bool requires_grad = true;
  bool is_trained = true;             // requires a gradient and lies in a group of the optimizer
  std::int32_t group = 0;             // of the optimizer; -1 for none
  DType wire = DType::float32;        // of its gradient (6.1)
  DType gathers_as = DType::float32;  // of its values
  bool is_persistent = false;         // 3.6
  bool is_of_leaf = false;            // its owner is a leaf module or lies below one (3.7)
  bool is_read_elsewhere = true;      // another module may read it, where any does (3.8)
  bool is_returned = false;           // a module may return it; then a step alone frees it (3.8)
};

struct Module {
  std::string name;                          // as events have it
  std::vector<std::size_t> parameters = {};  // its own; of a leaf module, those of all below it
  bool is_leaf = false;
  bool is_below_leaf = false;  // it does not fetch by itself
};

// What a program may do that leaves no event. A caller that knows the program says so; a recording
// leaves all of it open, and what depends on it counts as unspecified.
struct Unseen {
  bool keeps_graphs = true;           // retain_graph or create_graph
  bool gathers_inside = true;         // gather contexts in a forward, or in a hook of a backward
  bool skips_sync = true;             // no_sync
  bool has_idle_forwards = true;      // forwards without gradients
  bool reads_elsewhere = true;        // parameters that modules read, return or register (3.8)
  bool sets_scale = true;             // a loss scale that is set by hand
  bool lacks_gradients = true;        // hooks that get no gradient
  bool has_many_outputs = true;       // modules below the root that return several tensors
  bool sets_leaves = true;            // leaf modules that are set between forwards
  bool marks_tiles = true;            // tiled computations (2.16, step 3 of "Adding")
  bool differentiates_inside = true;  // engine calls in the middle of a backward or forward
};

// One engine of one rank: configuration and tables, without the program that runs.
struct World {
  ZeroConfig config = {};
  int ranks = 1;  // of the data-parallel group
  int sequence_ranks = 1;
  int tensor_ranks = 1;
  std::string prefix = {};  // before the names of its parameters and modules; with its dot
  Dialect dialect = Dialect::ours;
  bool counts_hooks = true;                    // the policy of its hooks does (hooks.md 1.6)
  bool skips_frames = false;                   // docs/spec/zero/skipped_frames.md
  std::vector<std::string> other_groups = {};  // of collectives that are no part of ZeRO
  bool has_sizes = true;          // a recording need not say how many elements parameters have
  bool has_configuration = true;  // nor what its buckets and windows are
  std::vector<Parameter> parameters = {};
  std::vector<Module> modules = {};  // the root first
  Unseen unseen = {};

  std::int64_t trained_elements() const;
  std::int64_t elements() const;
  int groups() const;
  bool is_ours() const { return dialect == Dialect::ours; }
};

// The tables of an engine over `module`. `groups`: the optimizer's, in order; empty: one group of
// all that require gradients. `leaves`: modules that the program makes leaves besides those of the
// configuration.
struct WorldOptions {
  int ranks = 1;
  int sequence_ranks = 1;
  int tensor_ranks = 1;
  std::string prefix = {};
  bool skips_frames = false;
  std::vector<std::string> other_groups = {};
  std::vector<TensorList> groups = {};
  std::vector<std::string> leaves = {};
  Unseen unseen = {};
};
World world_of(const ZeroConfig& config, nn::Module& module, const WorldOptions& options);

// "Linear" for zeroproof::nn::Linear.
std::string class_name(const nn::Module& module);

}  // namespace zeroproof::reference

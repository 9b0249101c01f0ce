#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace zeroproof::program {

// A model as a tree of modules. Every node has a name that no other node of the model has; a
// reference is such a name. Plain data; equal trees compare equal.

struct Module;
using ModuleList = std::vector<Module>;  // one is called after the other

// Which of a module's own parameters the optimizer trains.
enum class Trained : std::uint8_t {
  all,
  bias_only,  // the weight has requires_grad off
  frozen,     // all have requires_grad off
  ungrouped   // they have gradients, and no parameter group lists them
};

// torch.nn.Linear.
struct Linear {
  int inputs = 1;
  int outputs = 2;  // 0: parameters without elements
  bool has_bias = false;
  Trained trained = Trained::all;
  bool input_needs_grad = false;    // what it multiplies depends on the activations
  bool watches_input = false;       // a tensor hook of the user sees the gradient for its input
  int dimensions = 2;               // of its input: 1 to 3
  int activations = 1;              // arguments of its module: 2: twice; 3: and an undefined one
  bool closes_over_factor = false;  // its closure has what it multiplies with, not its arguments
  friend bool operator==(const Linear&, const Linear&) = default;
};

// A module of the user's own: weights without nn.Linear, which autocast does not cover.
struct Custom {
  std::vector<std::int64_t> shape = {2};  // of each weight; up to three dimensions, or none
  int weights = 1;                        // 2: the second's name begins with the first's
  Trained trained = Trained::all;         // all, frozen or ungrouped
  bool returns_weight = false;            // its caller uses the weight that it returns
  bool watches_input = false;             // as of Linear, of a weight with two dimensions
  int activations = 1;                    // as of Linear
  bool closes_over_factor = false;        // as of Linear
  friend bool operator==(const Custom&, const Custom&) = default;
};

// A parameter of the module around it, which uses it in its own forward.
struct OwnWeight {
  int elements = 3;
  friend bool operator==(const OwnWeight&, const OwnWeight&) = default;
};

struct Sequential {
  ModuleList body;
  friend bool operator==(const Sequential&, const Sequential&);
};

// Calls a module that comes before it in the tree once more.
struct Shared {
  std::string module;
  friend bool operator==(const Shared&, const Shared&) = default;
};

// A module of its own whose weight is the weight of an earlier module.
struct Tied {
  std::string module;
  friend bool operator==(const Tied&, const Tied&) = default;
};

// torch.utils.checkpoint around the body.
struct Checkpoint {
  bool is_reentrant = true;
  ModuleList body;
  friend bool operator==(const Checkpoint&, const Checkpoint&);
};

// The body runs tile by tile, and each tile's backward runs inside forward (TiledMLP).
struct Tiled {
  ModuleList body;
  friend bool operator==(const Tiled&, const Tiled&);
};

// Each forward runs one of the modules below. A leaf module of stage 3, said by a call, by its
// name, a suffix of it, or its class.
enum class LeafBy : std::uint8_t { call, name, suffix, class_name };
struct Experts {
  LeafBy leaf_by = LeafBy::call;
  int experts = 2;
  friend bool operator==(const Experts&, const Experts&) = default;
};

// The module around it uses a weight of another module: an external parameter in stage 3.
enum class ReadWhen : std::uint8_t {
  used_here,   // read and used in the root's forward
  held,        // read when the forward begins, used here
  in_a_module  // read by a module of its own
};
struct ExternalUse {
  std::string module;
  ReadWhen when = ReadWhen::used_here;
  bool is_registered = false;  // register_external_parameter
  bool watches_use = false;    // a tensor hook sees the gradient for what the weight multiplies
  friend bool operator==(const ExternalUse&, const ExternalUse&) = default;
};

// Registered, and never called.
struct Unused {
  ModuleList body;
  friend bool operator==(const Unused&, const Unused&);
};

using ModuleKind = std::variant<Linear, Custom, OwnWeight, Sequential, Shared, Tied, Checkpoint,
                                Tiled, Experts, ExternalUse, Unused>;

struct Module {
  std::string name;
  ModuleKind kind;
  friend bool operator==(const Module&, const Module&) = default;
};

inline bool operator==(const Sequential& a, const Sequential& b) {
  return a.body == b.body;
}
inline bool operator==(const Tiled& a, const Tiled& b) {
  return a.body == b.body;
}
inline bool operator==(const Unused& a, const Unused& b) {
  return a.body == b.body;
}
inline bool operator==(const Checkpoint& a, const Checkpoint& b) {
  return a.is_reentrant == b.is_reentrant && a.body == b.body;
}

// What a forward returns to its caller beside a list.
enum class Container : std::uint8_t { tensors, dict, dataclass };

// The body, then the heads: each head makes a loss of the body's activations. Without heads the
// mean of the activations is the only loss.
struct Model {
  std::string name;
  ModuleList body;
  std::vector<ModuleList> heads;
  Container container = Container::tensors;
  bool has_constant_output = false;  // a first output without a graph comes before the losses
  bool returns_activations = false;  // a last output, two elements, for losses outside the model
  double added_to_loss = 0.0;        // a constant: in fp16 a loss of that size cannot be scaled
  friend bool operator==(const Model&, const Model&) = default;

  int losses() const { return heads.empty() ? 1 : static_cast<int>(heads.size()); }
};

// The modules below, or null.
const ModuleList* body_of(const Module& module);
// Every node, a parent before its children, in the order of forward.
std::vector<const Module*> nodes_of(const Model& model);
// Null where the model has no such node.
const Module* find_module(const Model& model, const std::string& name);

}  // namespace zeroproof::program

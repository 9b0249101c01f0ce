#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace zeroproof::program {

// What a user does, one statement a line. Engines, values (losses) and modules are referred to by
// name. Every rank runs the same statements; `rank` and `ranks` say where one differs. Plain data.

struct Statement;
using Body = std::vector<Statement>;

// Code of the user that runs in the middle of a forward or of a backward over its graph.
struct Hook {
  enum class At : std::uint8_t {
    forward,   // after the module, where forward runs it the first time
    gradient,  // where backward passes what the module returned
    weight,    // where the weight of the module gets its gradient
    loss       // where backward begins
  };
  At at = At::gradient;
  std::string module;  // empty for `loss`
  std::vector<Statement> body;
  friend bool operator==(const Hook&, const Hook&);
};

// A module that one rank, or every rank, does not run.
struct Skip {
  std::string module;
  std::optional<int> rank = std::nullopt;
  friend bool operator==(const Skip&, const Skip&) = default;
};

// The gradient that a module gets leaves the range of its dtype on one rank.
struct Spike {
  enum class Value : std::uint8_t { infinity, negative_infinity, nan };
  std::string module;
  int rank = 0;
  Value value = Value::infinity;
  friend bool operator==(const Spike&, const Spike&) = default;
};

// `as = engine(inputs)`; with several losses the value `as` is the first, "as.1" the second. Of a
// model that returns its activations, "as.h" is a value of two elements. A value that had one of
// these names lives until the forward is over.
struct Forward {
  enum class Mode : std::uint8_t { train, no_grad };
  std::string engine;
  std::string as;
  Mode mode = Mode::train;
  bool inputs_need_grad = false;
  int expert = 0;  // which of the experts runs; in stage 3 rank r runs the r-th after it
  std::vector<Skip> skips = {};
  std::optional<Spike> spike = std::nullopt;
  // A checkpoint of the user around the engine's forward.
  enum class Around : std::uint8_t { none, reentrant, non_reentrant };
  Around around = Around::none;
  std::vector<Hook> hooks = {};
  friend bool operator==(const Forward&, const Forward&) = default;
};

// Calls a module of the engine's model past the engine: no output of the engine is in the value.
struct CallModule {
  std::string engine;
  std::string module;
  std::string as;
  bool in_checkpoint = false;
  bool uses_weight_alone = false;  // a linear function of the module's weight instead of the module
  friend bool operator==(const CallModule&, const CallModule&) = default;
};

// `as = a + b + …`.
struct Sum {
  std::vector<std::string> values;
  std::string as;
  friend bool operator==(const Sum&, const Sum&) = default;
};

// `as = engine.scale(value)`.
struct Scale {
  std::string engine;
  std::string value;
  std::string as;
  friend bool operator==(const Scale&, const Scale&) = default;
};

// engine.backward(value), or value.backward() where `engine` is empty. Here and in Scale an empty
// value is an undefined tensor.
struct Backward {
  std::string engine;
  std::string value;
  bool retain_graph = false;
  bool create_graph = false;
  bool scale_wrt_gas = true;
  bool keeps_dimension = false;  // the loss has one dimension of one element
  friend bool operator==(const Backward&, const Backward&) = default;
};

struct Step {
  std::string engine;
  friend bool operator==(const Step&, const Step&) = default;
};

struct ZeroGrad {
  std::string engine;
  friend bool operator==(const ZeroGrad&, const ZeroGrad&) = default;
};

// engine.set_gradient_accumulation_boundary.
struct SetBoundary {
  std::string engine;
  bool is_boundary = true;
  friend bool operator==(const SetBoundary&, const SetBoundary&) = default;
};

// engine.override_loss_scale.
struct SetScale {
  std::string engine;
  double loss_scale = 1.0;
  // By bits: a scale that is NaN equals itself.
  friend bool operator==(const SetScale& a, const SetScale& b) {
    return a.engine == b.engine &&
           std::bit_cast<std::uint64_t>(a.loss_scale) == std::bit_cast<std::uint64_t>(b.loss_scale);
  }
};

struct SetLearningRate {
  std::string engine;
  std::optional<int> group = std::nullopt;  // none: all
  double learning_rate = 0.0;
  friend bool operator==(const SetLearningRate&, const SetLearningRate&) = default;
};

// The user writes .grad of every parameter, and zero_grad() takes it back.
struct SetGrad {
  std::string engine;
  friend bool operator==(const SetGrad&, const SetGrad&) = default;
};

// requires_grad of the module's parameters, from now on.
struct Freeze {
  std::string engine;
  std::string module;
  bool is_trained = false;
  friend bool operator==(const Freeze&, const Freeze&) = default;
};

// The last reference to the value's graph goes: to the value, and to every one that shares a graph
// with it. Values live until then, until a forward makes another one of their name, or to the end.
struct Drop {
  std::string value;
  std::optional<int> rank = std::nullopt;  // none: on every rank
  friend bool operator==(const Drop&, const Drop&) = default;
};

// A context manager around the body.
struct Block {
  enum class Kind : std::uint8_t {
    no_sync,
    coalesce,        // coalesce_grad_reduction
    gathered,        // GatheredParameters
    autocast,        // of the engine's dtype
    other_autocast,  // of another one
    capture          // engine.capture: refused before its body runs where no device can capture
  };
  Kind kind = Kind::no_sync;
  std::string engine;
  // gathered: empty: all parameters.
  std::vector<std::string> modules = {};
  enum class Modifier : std::uint8_t { none, first, last };
  Modifier modifier = Modifier::none;
  enum class Change : std::uint8_t {
    none,
    by_modifier,  // the modifying rank adds one to every element
    by_all,       // every rank does, each something else
    unannounced,  // the last rank does, though no modifier_rank is named: refused
    moves,        // a parameter that all ranks take over leaves its device meanwhile: refused
    holds_nan     // all elements are NaN for a while, and no sanity check may mind
  };
  Change change = Change::none;
  Body body;
  friend bool operator==(const Block&, const Block&);
};

// A forward of the engine as a function of its parameters or inputs: torch.func.
struct Transform {
  enum class Kind : std::uint8_t { grad, vmap, vmap_of_engine };
  std::string engine;
  Kind kind = Kind::grad;
  friend bool operator==(const Transform&, const Transform&) = default;
};

// The user's own code throws; Catch goes on after its body.
struct Raise {
  friend bool operator==(const Raise&, const Raise&) = default;
};
struct Catch {
  Body body;
  friend bool operator==(const Catch&, const Catch&);
};

// The device has no room at the k-th allocation of the body, on every rank; the user catches it
// and runs the body again.
struct OutOfMemory {
  int allocation = 0;
  bool clears = false;  // zero_grad() of every engine before the body runs again
  Body body;
  friend bool operator==(const OutOfMemory&, const OutOfMemory&);
};

struct Save {
  std::string engine;
  std::string tag;
  enum class Failure : std::uint8_t { none, cut_short, disk_full };
  Failure failure = Failure::none;
  int at = 0;  // which of its files fails
  friend bool operator==(const Save&, const Save&) = default;
};

struct Load {
  std::string engine;
  std::string tag;
  enum class Failure : std::uint8_t {
    none,
    damaged,     // a file of it has other bytes: refused
    missing,     // no such tag: refused
    unreadable,  // the files of one rank fail: refused
    misfit       // saved by an engine of other parameters or groups: refused
  };
  Failure failure = Failure::none;
  int at = 0;  // which file, which byte, which kind of misfit
  friend bool operator==(const Load&, const Load&) = default;
};

// The engine goes, and another is made of a model of its own; what follows loads a checkpoint.
struct Recreate {
  std::string engine;
  friend bool operator==(const Recreate&, const Recreate&) = default;
};

// The job ends, and another one with so many ranks and this stage begins: the engines are new, and
// load the tag. At the top level only; every engine has saved the tag.
struct Resume {
  int ranks = 1;
  int stage = 0;
  std::string tag;
  friend bool operator==(const Resume&, const Resume&) = default;
};

// The user reads whole values.
struct Inspect {
  enum class What : std::uint8_t { gradients, masters, optimizer_state, weights };
  std::string engine;
  What what = What::gradients;
  friend bool operator==(const Inspect&, const Inspect&) = default;
};

// register_external_parameter(root, weight of the module), or set_leaf_module of the experts again.
struct RegisterExternal {
  std::string engine;
  std::string module;
  friend bool operator==(const RegisterExternal&, const RegisterExternal&) = default;
};
struct SetLeaf {
  std::string engine;
  std::string module;
  friend bool operator==(const SetLeaf&, const SetLeaf&) = default;
};

// DeepCompile's skipped frames: a guard reads every weight; forwards without a backward end.
struct EvaluateGuards {
  std::string engine;
  friend bool operator==(const EvaluateGuards&, const EvaluateGuards&) = default;
};
struct ReleaseGathered {
  std::string engine;
  friend bool operator==(const ReleaseGathered&, const ReleaseGathered&) = default;
};

// Another engine around a model of its own is made, and goes.
struct TemporaryEngine {
  std::string engine;  // whose model and configuration it has
  friend bool operator==(const TemporaryEngine&, const TemporaryEngine&) = default;
};

// One more engine is asked for with this configuration: the engine's with one key of its
// ds_config.json set. validate() decides whether it is made, and goes again, or refused.
struct TryConfig {
  std::string engine;
  std::string key;    // a JSON pointer: "/zero_optimization/stage"
  std::string value;  // JSON
  friend bool operator==(const TryConfig&, const TryConfig&) = default;
};

// A backward of a loss that no engine is in. One that throws does so at its loss, and the user
// catches it there.
struct ForeignBackward {
  bool throws = false;
  friend bool operator==(const ForeignBackward&, const ForeignBackward&) = default;
};

using StatementKind =
    std::variant<Forward, CallModule, Sum, Scale, Backward, Step, ZeroGrad, SetBoundary, SetScale,
                 SetLearningRate, SetGrad, Freeze, Drop, Block, Transform, Raise, Catch,
                 OutOfMemory, Save, Load, Recreate, Resume, Inspect, RegisterExternal, SetLeaf,
                 EvaluateGuards, ReleaseGathered, TemporaryEngine, TryConfig, ForeignBackward>;

struct Statement {
  StatementKind kind;
  friend bool operator==(const Statement&, const Statement&) = default;
};

inline bool operator==(const Hook& a, const Hook& b) {
  return a.at == b.at && a.module == b.module && a.body == b.body;
}
inline bool operator==(const Block& a, const Block& b) {
  return a.kind == b.kind && a.engine == b.engine && a.modules == b.modules &&
         a.modifier == b.modifier && a.change == b.change && a.body == b.body;
}
inline bool operator==(const Catch& a, const Catch& b) {
  return a.body == b.body;
}
inline bool operator==(const OutOfMemory& a, const OutOfMemory& b) {
  return a.allocation == b.allocation && a.clears == b.clears && a.body == b.body;
}

}  // namespace zeroproof::program

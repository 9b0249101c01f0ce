#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "props/program/forward_flow.h"
#include "props/program/program.h"
#include "props/program/scaler_state.h"

namespace zeroproof::program {

// Where a program is in the middle of: its engines, graphs, values, checkpoints, and the blocks
// and hooks around the next statement. Plain data; typestate.h says how it moves.

// The graph that a forward of an engine made, or a call of a module past it.
struct Graph {
  std::string engine;
  std::shared_ptr<const Forward> forward;   // null: of a call
  std::shared_ptr<const CallModule> call;   // null: of a forward
  std::shared_ptr<const ForwardFlow> flow;  // of a call: its weight alone
  std::int64_t weights = 0;                 // EngineState::weights then
  std::size_t frames = 0;                   // State::frames around it
  std::size_t hooks = 0;                    // those of them that are hooks of a backward
  bool is_outdated_by_change = false;       // every rank wrote weights that it has saved
  bool is_trunk_freed = false;
  std::set<int> freed_losses = {};
  bool has_second_graph = false;  // a backward made a graph of its gradients
};

// A part of a value: a loss of a graph, and what scaled it.
struct Term {
  int graph = 0;
  int loss = 0;  // -1: the activations
  struct Factor {
    std::string engine;
    std::int64_t version = 0;  // ScalerState::version
    friend bool operator==(const Factor&, const Factor&) = default;
  };
  std::vector<Factor> factors = {};
};

struct Value {
  std::vector<Term> terms;
  bool has_graph = true;
  bool is_scalar = true;
};

// What an engine has of its window.
struct Window {
  bool has_gradients = false;  // a backward has ended
  bool has_local = false;      // gradients that are not reduced yet
  bool has_spike = false;
  std::set<std::string> reached = {};  // weights, as Reach names them
  friend bool operator==(const Window&, const Window&) = default;
};

struct EngineState {
  std::int64_t weights = 0;  // grows with each change of them
  std::int64_t micro_steps = 0;
  std::optional<bool> boundary = std::nullopt;  // as its user said
  ScalerState scaler;
  bool is_scale_called = false;
  Window window;
  bool is_in_no_sync = false;
  bool is_coalescing = false;
  bool has_failed_in_block = false;     // its last backward in the block
  std::set<std::string> gathered = {};  // modules in open contexts
  std::set<std::string> frozen = {};    // modules, for a while
  bool has_changed_weights = false;     // a user's, which no step has replaced
  bool all_changed_them = false;
  bool is_spoiled = false;     // by what no step looked at
  bool has_forwarded = false;  // since its last step
  bool has_created_graph = false;
  enum class Owes : std::uint8_t { none, zero_grad, load };
  Owes owes = Owes::none;
  std::optional<int> tiled = std::nullopt;  // the graph whose gradients came in forward
  bool has_left_graph = false;  // one without a backward went; skipped frames may claim for it
};

// What is around the next statement.
struct Frame {
  enum class Kind : std::uint8_t {
    no_sync,
    coalesce,
    gathered,
    autocast,
    caught,
    out_of_memory,
    forward_hook,
    backward_hook
  };
  Kind kind = Kind::caught;
  std::string engine = {};             // of the block, or of the forward
  std::set<std::string> engines = {};  // of the value that is differentiated
  std::string managed = {};            // whose engine.backward runs
  bool keeps_graph = false;
};

struct SavedState {
  std::int64_t micro_steps = 0;
  ScalerState scaler;
};

struct State {
  const Program* program = nullptr;  // without its body; must outlive this
  int ranks = 1;
  int stage = 0;
  std::map<std::string, EngineState> engines;
  std::map<std::string, Value> values;
  std::map<int, Graph> graphs;  // those that values have
  int next_graph = 0;
  std::vector<Frame> frames;
  std::map<std::string, std::map<std::string, SavedState>> saved;  // tag, engine
  std::map<std::string, std::string> latest;                       // by engine, the tag

  const ZeroConfig& config() const { return program->config; }
  const Model& model(const std::string& engine) const { return program->model_of(engine); }
  int world_size() const { return ranks * program->world.tensor; }

  bool is_in(Frame::Kind kind) const;
  const Frame* backward_around() const;  // the innermost one, or null
  std::size_t hooks_around() const;      // of backwards
  bool is_at_top() const { return frames.empty(); }
  bool is_boundary(const EngineState& engine) const;
  // Whether a step() now updates the weights; within a window it only counts.
  bool steps_model(const EngineState& engine) const;
  // Whether .backward() of a loss reaches engines without engine.backward.
  bool supports_manual_backward() const;
  // Values with a graph of the engine that no backward has freed.
  bool has_live_graph(const std::string& engine) const;
  void drop(const std::string& value);            // it alone
  void drop_graphs_of(const std::string& value);  // and whatever shares a graph with it
  void define(const std::string& name, Value value);
  void forget_unused_graphs();
};

bool is_freed(const Graph& graph, int loss);

}  // namespace zeroproof::program

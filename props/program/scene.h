#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "props/program/grammar.h"
#include "props/program/model_traits.h"
#include "props/program/typestate.h"

namespace zeroproof::program {

// A program while it is drawn: productions add statements, and each of them makes sense when it is
// added. `program` and `source` must outlive it; the program's head is complete.
class Scene {
 public:
  Scene(Program& program, Source& source, const Policy& policy, Typestate start);

  Source& source() { return source_; }
  const Policy& policy() const { return policy_; }
  const Program& program() const { return program_; }
  const State& state() const { return typestate_.state(); }
  const ZeroConfig& config() const { return program_.config; }

  // --- statements ---

  // False: it makes no sense here, or is refused; then it is not added.
  bool add(Statement statement);
  // False unless it is refused here.
  bool add_refused(Statement statement);
  bool is_allowed(const Statement& statement) const;
  // Adds what `make` does; leaves the program unchanged where it returns false.
  bool attempt(const std::function<bool()>& make);
  // A statement around others: `fill` adds to its body. False as add().
  bool around(Statement outer, const std::function<bool()>& fill);
  // The same, and what came of the whole must be a refusal.
  bool around_refused(Statement outer, const std::function<bool()>& fill);
  // Statements of a hook, which the backward checks.
  static Hook hook(Hook::At at, std::string module, Body body);

  std::string new_value();
  std::string new_tag();

  // --- where it is ---

  // The engine that the production is about, and its state, model and name.
  const std::string& engine() const { return engine_; }
  void choose_engine(std::string engine) { engine_ = std::move(engine); }
  const EngineState& engine_state() const { return state().engines.at(engine_); }
  const Model& model() const { return program_.model_of(engine_); }
  const ModelTraits& traits() const { return traits_.at(engine_); }
  std::vector<std::string> engines() const;
  std::optional<std::string> other_engine() const;
  bool is_stage(int least, int most) const {
    return state().stage >= least && state().stage <= most;
  }
  bool is_managed_accumulation() const { return config().managed_gradient_accumulation; }
  bool is_boundary() const { return state().is_boundary(engine_state()); }
  bool needs_scaler() const { return engine_state().scaler.is_needed(); }
  bool is_alone() const { return program_.engines.size() == 1; }
  bool is_autocast() const { return config().torch_autocast.enabled; }
  // A block that puts reductions off, which there is here.
  std::optional<Block::Kind> some_block() const;
  bool has_frames() const { return program_.world.skips_frames; }
  bool has_weights_in_context() const { return state().stage == 3; }

  // --- what productions share (scene_training.cpp) ---

  // A forward of the engine, which the caller may change before it adds it.
  Forward forward();
  // Adds it; a loss without a graph gets inputs that need a gradient.
  bool add_forward(Forward& forward);
  std::optional<std::string> loss();  // the value of a new forward, or of one that came ahead
  // The losses of a forward that are differentiated, the last one last.
  std::vector<std::string> losses_of(const std::string& value);
  // One backward, managed or manual, with what its scale needs.
  bool differentiate(const std::string& value, const Backward& backward = {});
  bool differentiate_managed(const std::string& value, Backward backward = {});
  bool differentiate_manually(const std::string& value, bool retain_graph = false);
  // All losses of a forward.
  bool differentiate_all(const std::string& value);
  // A forward and its backwards.
  bool train();
  bool drop(const std::string& value);
  bool zero_grad_all();
  // A module of the model that a gradient hook can stand at, and the forward that has it.
  std::optional<std::string> some_hooked_module(const Forward& forward);
  std::optional<std::string> some_owner(bool is_trained);
  // A forward with this hook at some module, and its backward, by engine.backward or by hand.
  bool train_with_hook(Body body);

  // Another engine than the production's has its training, too.
  void mark_trained(const std::string& engine) { trained_.insert(engine); }
  bool take_trained(const std::string& engine) { return trained_.erase(engine) > 0; }

  // Forwards that came before the step they are not of.
  std::map<std::string, std::string>& ahead() { return ahead_; }

 private:
  bool add_as(Statement statement, bool is_refused);
  bool wrap(Statement outer, const std::function<bool()>& fill, bool is_refused);

  Program& program_;
  Source& source_;
  const Policy& policy_;
  Typestate typestate_;
  Typestate after_;                            // the next statement, while it is tried
  std::map<std::string, ModelTraits> traits_;  // of the engines' models
  Body* body_;
  std::string engine_;
  std::map<std::string, std::string> ahead_;
  std::set<std::string> trained_;
  int values_ = 0;
  int tags_ = 0;
};

}  // namespace zeroproof::program

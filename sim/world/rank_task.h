#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sim/world/fiber.h"
#include "sim/world/history.h"
#include "sim/world/rank_control.h"
#include "sim/world/sim_runtime.h"
#include "sim/world/sim_world.h"
#include "zeroproof/internal/model/choice.h"

namespace zeroproof::sim {

// One rank: its runtime, its fiber, and what it waits for.
class RankTask final : public RankControl, public Chooser {
 public:
  RankTask(int rank, const SimRuntimeOptions& options, SimWorld& world);

  // RankControl
  void step(const SeamStep& call) override;
  void block_on(StreamEvent event) override;
  void reach(SeamCall call) override;
  void note(std::uint64_t value) override;
  void note_progress(bool is_done) override;
  void report(FindingKind kind, std::string text) override;
  int rank() const override { return rank_; }
  std::uint64_t steps() const override { return world_.steps(); }

  // Chooser, for choices within the rank.
  std::size_t choose(const ChoicePoint& at) override;

  // Its program, or the work of a stream, is about to go on.
  void note_turn(std::uint64_t agent) { turns_.add(agent); }
  Fingerprint turns() const { return turns_.value(); }

  void start(const SimWorld::Program& program);
  void resume() { fiber_->resume(); }
  bool is_done() const { return !fiber_ || fiber_->is_done(); }
  bool is_ready() const;  // not ended, and not waiting
  const std::optional<StreamEvent>& awaited() const { return awaited_; }
  // From now on every wait ends at once, with this failure; empty: ExecutionCut.
  void wake(const std::string& failure);

  SimRuntime& runtime() { return runtime_; }
  const SimRuntime& runtime() const { return runtime_; }
  const std::string& name() const { return name_; }
  const std::exception_ptr& error() const { return error_; }
  std::exception_ptr take_error() { return std::exchange(error_, nullptr); }
  Fingerprint fingerprint() const;

 private:
  void run(const SimWorld::Program& program);
  void raise_if_woken() const;

  int rank_;
  std::string name_;  // "r0"
  SimWorld& world_;
  SimRuntime runtime_;
  std::unique_ptr<Fiber> fiber_;
  std::optional<StreamEvent> awaited_;
  History history_;
  History turns_;  // of its program and its streams, in their order
  std::exception_ptr error_;
  bool is_woken_ = false;
  std::string failure_;
};

}  // namespace zeroproof::sim

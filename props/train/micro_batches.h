#pragma once

#include <cstddef>

#include "props/train/window_misuses.h"
#include "props/train/window_training.h"

namespace zeroproof::train {

// The micro-batches of a generated window: from one step() to the next.
class MicroBatches {
 public:
  // Both must outlive it.
  MicroBatches(const WindowContext& window, WindowCheckpoints& checkpoints);
  MicroBatches(const MicroBatches&) = delete;  // its parts know each other
  MicroBatches& operator=(const MicroBatches&) = delete;

  // Number `at` of the case.
  void run(std::size_t at);
  // Its first forward, before it is its turn.
  void run_ahead(std::size_t at);
  // One that has nothing special: what a step that was refused has missed.
  void run_plain() { training_.once(MicroSpec()); }

  // Graphs of this window live on behind it.
  bool has_kept() const { return backwards_.has_kept(); }
  void release_kept() { backwards_.release_kept(); }

 private:
  void prepare(const MicroSpec& micro);
  void run_idly(const MicroSpec& micro, std::size_t at);
  void fail(const MicroSpec& micro, std::size_t at);
  void train(const MicroSpec& micro, std::size_t at);

  void evaluate(const MicroSpec& micro, std::size_t at);
  void visit(const MicroSpec& micro, std::size_t at);
  void visit_once(const MicroSpec& micro);
  void abandon_forward(const MicroSpec& micro);
  void throw_one(const MicroSpec& micro);
  void outdate_one();
  void abort_one(const MicroSpec& micro, std::size_t at);
  void ask(const MicroSpec& micro, std::size_t at);

  const CaseSpec& spec_;
  Pass& pass_;
  const WindowContext& window_;
  WindowInputs inputs_;
  RepeatedCalls repeated_;
  BackwardHook hook_;
  WindowForwards forwards_;
  WindowBackwards backwards_;
  WindowMisuses misuses_;
  WindowTraining training_;
  bool is_retained_ = false;  // a last backward of this window has kept its graph
};

}  // namespace zeroproof::train

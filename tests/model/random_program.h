#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/cpu_ops.h"
#include "model/graph_walk.h"
#include "tests/model/slow_engine.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof::testing {

// Programs as data: leaves, operations on earlier tensors, backwards. Values are small integers
// and the generator bounds the number of weighted paths, so that every sum is exact in whatever
// order it is taken.

enum class StepKind : std::uint8_t {
  add,
  sub,
  mul,
  scale,  // by a small integer
  detach,
  no_grad_add,    // a + b with grad mode off
  unbind,         // the two halves of stack(a, b): two tensors
  function,       // a custom Function, a + 2 b
  function_none,  // the same without a gradient for b
  function_two,   // a custom Function of two outputs, a + b and a - b
};

struct Step {
  StepKind kind = StepKind::add;
  std::size_t a = 0;  // indices into all tensors so far
  std::size_t b = 0;
  int factor = 1;
};

struct LeafSpec {
  int value = 1;
  bool is_frozen = false;
};

struct BackwardSpec {
  std::vector<std::size_t> roots;
  std::vector<std::size_t> inputs;  // empty: none given
  bool is_accumulating = true;      // false: autograd.grad
};

// A tensor hook at `at` that starts a backward of `root`, over the same graph, whenever a task
// nested `level` deep reaches it.
struct NestedSpec {
  std::size_t at = 0;
  std::size_t root = 0;
  std::size_t level = 0;
};

struct Program {
  std::vector<LeafSpec> leaves;
  std::vector<Step> steps;
  std::vector<BackwardSpec> backwards;
  std::vector<NestedSpec> nested;
};
std::ostream& operator<<(std::ostream& out, const Program& program);

struct ProgramSize {
  int leaves_max = 4;
  int steps_max = 6;
  int backwards_max = 1;
  int nested_max = 0;
  bool has_partial_gradients = true;  // operations that can hand on undefined ones
};
Program random_program(const ProgramSize& size);

// What the leaves' gradients are after all backwards, from the program's data alone: element by
// element, zero where there is none. Of programs without nested backwards.
std::vector<std::vector<double>> reference_gradients(const Program& program);

// Everything that one graph task did.
struct TaskRecord {
  GraphSnapshot graph;
  std::vector<NodeId> order;                               // as on_node saw it
  std::map<NodeId, std::vector<std::size_t>> starts = {};  // nested tasks, by reached node
  bool is_nested = false;
};

// Values and definedness, to compare bit by bit.
using Numbers = std::optional<std::vector<double>>;
Numbers numbers_of(const Tensor& tensor);

// Writes down every graph task of an autograd, nested ones with the node that they started at.
class TaskRecorder final : public AutogradObserver {
 public:
  // Before the first backward.
  void attach(Autograd& autograd) { autograd_ = &autograd; }

  // The hook that starts a nested backward says of which tensor it is.
  void start_from(const Tensor& tensor) { start_ = tensor; }
  std::size_t level() const { return running_.size() - 1; }

  const std::vector<TaskRecord>& tasks() const { return tasks_; }
  // Order of all tasks together, as (task, node).
  const std::vector<SlowStep>& steps() const { return steps_; }

 private:
  void on_backward_begin(const BackwardCall& call) override;
  void on_node(const Node& node) override;
  void on_backward_end(std::exception_ptr error) override;

  struct Running {
    std::size_t task;
    GraphWalk walk;
  };
  Autograd* autograd_ = nullptr;
  Tensor start_;
  std::vector<TaskRecord> tasks_;
  std::vector<SlowStep> steps_;
  std::vector<Running> running_;
};

// Builds a program in an autograd of its own, runs it and writes down what happened.
class ProgramRun {
 public:
  // The chooser decides among all legal orders; null: the faithful order.
  explicit ProgramRun(const Program& program, Chooser* chooser = nullptr);
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;
  void run_backwards();

  Autograd& autograd() { return autograd_; }
  const TensorList& tensors() const { return tensors_; }
  const TaskRecorder& recorder() const { return recorder_; }
  // Of every leaf, then what every autograd.grad() returned.
  std::vector<Numbers> results() const;

 private:
  void add_outputs(const Step& step);
  void hook_nested(const NestedSpec& nested);
  void run(const BackwardSpec& spec);
  TensorList tensors_at(const std::vector<std::size_t>& places) const;

  Program program_;
  CpuOps ops_;
  TaskRecorder recorder_;
  Autograd autograd_;
  TensorList tensors_;
  TensorList captured_;
};

}  // namespace zeroproof::testing

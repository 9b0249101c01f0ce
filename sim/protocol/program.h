#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeroproof/internal/model/order_model.h"
#include "zeroproof/model/ids.h"

namespace zeroproof {

// An index into ProtocolProgram::tasks.
using TaskIndex = StrongId<struct TaskIndexTag>;

// One call of engine.forward.
struct ForwardCall {
  std::string label;  // names its outputs
  EngineId engine;
  std::vector<TaskIndex> pre_user_backwards;  // run inside the forward (a tiled loss)
};

enum class NodeKind {
  op,           // runs unseen
  output_hook,  // a tensor that engine.forward returned: the engine's output hook runs
  accumulate,   // an AccumulateGrad: the parameter's gradient hook runs
  recompute,    // a reentrant checkpoint: a nested graph task, perhaps after a forward
  raise,        // user code that raises
};

// One node of a graph task. `next` are indices into GraphTaskProgram::nodes.
struct ProtocolNode {
  std::string id;
  NodeKind kind = NodeKind::op;
  std::uint64_t sequence_nr = 0;  // creation order; the faithful order model needs it
  std::vector<std::size_t> next;
  EngineId engine;                        // output_hook, accumulate
  std::string forward;                    // output_hook: label of the forward
  std::string param;                      // accumulate
  std::optional<ForwardCall> recomputed;  // recompute: engine.forward runs again first
  TaskIndex nested;                       // recompute
};

// The graph of one backward, rooted at node 0. At most one path leads a node before itself:
// the loader rejects cycles.
struct GraphTaskProgram {
  std::string id;
  std::vector<ProtocolNode> nodes;
};

struct ProtocolEngineSpec {
  std::string name;
  std::vector<std::string> params;
  std::int32_t idle_leaf_modules = 0;  // counted as expected hooks though they do not run (S14)
  bool requires_scale = false;         // a scaler is needed, so a manual backward raises E2 (S9)
};

enum class StatementKind { forward, backward, step, zero_grad };

// One line of the user's script. An exception that leaves a statement is caught by the user, who
// goes on with the next one.
struct Statement {
  StatementKind kind = StatementKind::step;
  ForwardCall forward;             // forward
  TaskIndex task;                  // backward
  bool is_through_engine = false;  // backward: engine.backward(loss), else loss.backward()
  EngineId engine;                 // backward through the engine, step, zero_grad
};

// What one process does, at the level of hooks: no tensors, no collectives.
struct ProtocolProgram {
  std::vector<ProtocolEngineSpec> engines;
  std::vector<GraphTaskProgram> tasks;
  std::vector<Statement> statements;

  const GraphTaskProgram& task(TaskIndex index) const {
    return tasks[static_cast<std::size_t>(index.value)];
  }
};

}  // namespace zeroproof

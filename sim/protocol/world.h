#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/protocol/event_log.h"
#include "sim/protocol/program.h"
#include "sim/protocol/protocol_engine.h"
#include "sim/protocol/task_schedule.h"
#include "zeroproof/engine/hooks/policies.h"
#include "zeroproof/internal/model/choice.h"
#include "zeroproof/internal/model/names.h"

namespace zeroproof {

// Makes a policy that is not in the catalogue.
using MakePolicy = std::function<std::unique_ptr<HookPolicy>()>;

// How a program is run.
struct ProtocolSetup {
  std::string policy = "exact";
  MakePolicy make_policy = {};  // empty: the policy of that name
  PolicyMode mode = PolicyMode::graph_task_callback;
  OrderModel order_model = OrderModel::faithful;
};

// Runs a protocol program once, from the beginning, as a function of the chooser only: the
// autograd of docs/spec/zero.md 1.1 without tensors. Where several nodes may run next it asks
// Chooser::choose with site "graph_task.ready", the nodes' ids and a fingerprint of everything
// that decides the rest. Not thread-safe.
class ProtocolWorld {
 public:
  // Appends the state of the observers of events (properties), so that fingerprints cover it.
  using WatcherState = std::function<void(std::string&)>;

  // Everything must outlive the world. The setup's policy must exist and fit its mode
  // (make_policy says why not).
  ProtocolWorld(const ProtocolProgram& program, const ProtocolSetup& setup, NameTable& names,
                EventSink& sink);
  ~ProtocolWorld();

  void set_watcher_state(WatcherState watcher) { watcher_state_ = std::move(watcher); }

  // Call once. ExecutionCut passes through.
  void run(Chooser& chooser);

  // After run: one per engine of the program.
  std::vector<EngineOutcome> outcomes() const;
  std::uint64_t events_written() const { return log_.events_written(); }

  // Of everything that decides how the rest of the execution goes.
  Fingerprint fingerprint() const;

 private:
  struct RunningTask;

  void run_statement(const Statement& statement);
  void run_forward(const ForwardCall& forward);
  void run_engine_backward(const Statement& statement);
  void run_graph_task(TaskIndex task);
  void run_nodes(RunningTask& running);
  void run_node(const ProtocolNode& node);
  void run_recompute(const ProtocolNode& node);
  void run_final_callbacks(RunningTask& running);
  void collect_callbacks();
  void end_graph_task(const SimulatedException* raised);
  void report_exception(const SimulatedException& raised);
  ProtocolEngine& engine(EngineId id) { return *engines_[static_cast<std::size_t>(id.value)]; }

  const ProtocolProgram& program_;
  ProtocolSetup setup_;
  EventLog log_;
  std::vector<std::unique_ptr<ProtocolEngine>> engines_;
  std::vector<std::unique_ptr<RunningTask>> running_;  // innermost last
  std::size_t statement_ = 0;
  Chooser* chooser_ = nullptr;
  WatcherState watcher_state_;
};

}  // namespace zeroproof

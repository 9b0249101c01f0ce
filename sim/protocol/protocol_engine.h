#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/protocol/event_log.h"
#include "sim/protocol/program.h"
#include "zeroproof/engine/hooks/hook_policy.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {

// One epilogue, and how many gradient hooks had done their work before it.
struct EpilogueRecord {
  bool is_automatic = false;
  std::int32_t works_before = 0;
};

// What one engine did in one execution.
struct EngineOutcome {
  std::vector<EpilogueRecord> epilogues;
  std::vector<std::string> unreduced;  // parameters whose work no epilogue followed, in order
  std::int32_t expected_counts = 0;    // expected-set queries
  std::int32_t works = 0;
  BackwardState state;
  bool is_backward_running = false;
};

// The engine-level flow of docs/spec/zero.md 2.3-2.9 without tensors: output-hook manager,
// prologue, gradient hooks, post hook, epilogue. It reports everything to its policy and to the
// log.
class ProtocolEngine final : public HookHost, private ManagerObserver {
 public:
  struct Setup {
    EngineId id;
    const ProtocolEngineSpec* spec;  // must outlive the engine
    std::unique_ptr<HookPolicy> policy;
    PolicyMode mode;
  };

  // The log must outlive the engine.
  ProtocolEngine(Setup setup, EventLog& log);

  HookPolicy& policy() { return *setup_.policy; }
  EngineId id() const { return setup_.id; }
  EngineOutcome outcome() const;

  void begin_forward();
  void end_forward();
  void begin_backward() { tracker_.begin_backward(); }
  void end_backward(bool raised);
  // `program`: of the task that runs from now on, null outside any. It must outlive the task.
  void begin_graph_task(GraphTaskId task, const GraphTaskProgram* program);
  void end_graph_task(GraphTaskId task, bool raised, const GraphTaskProgram* program);
  void run_output_hook(const std::string& forward);
  void run_gradient_hook(const std::string& param);
  void run_final_callback();
  void run_step();
  void run_zero_grad();
  void run_epilogue(bool is_automatic);
  HookEvent call_event(std::string_view method);

  // Callbacks this engine queued on the current task since the last call.
  int take_queued_callbacks() { return std::exchange(queued_callbacks_, 0); }

  void append_state(std::string& bytes) const;

  bool has_callback_api() const override;
  GraphTaskId current_graph_task() const override;
  void queue_callback() override;
  std::int32_t count_expected_hooks() override;
  void run_post_hook() override;
  void abandon_gradients() override;

 private:
  void on_manager_call(ManagerMethod method, const BackwardState& before,
                       std::optional<std::int64_t> argument) override;
  void on_manager_return(ManagerMethod method, const BackwardState& after,
                         std::optional<bool> returned, bool raised) override;

  Setup setup_;
  EventLog& log_;
  EngineOutcome outcome_;
  const GraphTaskProgram* running_task_ = nullptr;
  std::set<std::pair<std::string, std::int64_t>> prologues_;  // forward, graph task (or -1)
  int queued_callbacks_ = 0;
};

}  // namespace zeroproof

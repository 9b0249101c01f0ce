#include "sim/protocol/protocol_engine.h"

#include <fmt/format.h>

#include "model/check.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {

ProtocolEngine::ProtocolEngine(Setup setup, EventLog& log) : setup_(std::move(setup)), log_(log) {
  setup_.policy->set_observer(this);
  tracker_.set_running_mark(setup_.policy->running_mark());
}

EngineOutcome ProtocolEngine::outcome() const {
  EngineOutcome outcome = outcome_;
  outcome.state = setup_.policy->state();
  outcome.is_backward_running = tracker_.is_backward_marked();
  return outcome;
}

void ProtocolEngine::begin_forward() {
  setup_.policy->on_forward_begin(*this);
  tracker_.begin_forward();
}

void ProtocolEngine::end_forward() {
  tracker_.end_forward();
  setup_.policy->on_forward_end(*this);
}

void ProtocolEngine::end_backward(bool raised) {
  tracker_.end_backward(raised);
  setup_.policy->on_backward_end(*this, raised);
}

void ProtocolEngine::begin_graph_task(GraphTaskId task, const GraphTaskProgram* program) {
  running_task_ = program;
  tracker_.begin_task(task);
  setup_.policy->on_graph_task_begin(*this, task);
}

void ProtocolEngine::end_graph_task(GraphTaskId task, bool raised,
                                    const GraphTaskProgram* program) {
  running_task_ = program;
  setup_.policy->on_graph_task_end(*this, task, raised);
  tracker_.end_task(task, raised);
}

HookEvent ProtocolEngine::call_event(std::string_view method) {
  HookEvent event = log_.make(EventKind::engine_call, method);
  event.engine = setup_.id;
  return event;
}

// Output-hook manager (docs/spec/zero.md 2.4): the first hook of a forward, or of a forward in this
// graph task, runs the prologue.
void ProtocolEngine::run_output_hook(const std::string& forward) {
  const bool is_per_task = setup_.policy->prologue_rule() == PrologueRule::once_per_graph_task;
  const std::int64_t task = is_per_task ? log_.current_graph_task().value : -1;
  if (prologues_.emplace(forward, task).second) {
    const EngineCallScope scope(log_, call_event("engine.backward_prologue"));
    tracker_.run_prologue();
    setup_.policy->on_prologue(*this);
  }
  const EngineCallScope scope(log_, call_event("engine.backward_prologue_per_tensor"));
}

void ProtocolEngine::run_gradient_hook(const std::string& param) {
  HookEvent accumulated = log_.make(EventKind::param_post_acc);
  accumulated.param = log_.names().intern(param);
  log_.write(accumulated);
  HookEvent call = call_event("grad_hook");
  call.param = accumulated.param;
  const EngineCallScope scope(log_, std::move(call));
  const bool refresh_count = setup_.policy->before_gradient(*this);
  ++outcome_.works;
  outcome_.unreduced.push_back(param);
  setup_.policy->after_gradient(*this, refresh_count);
}

void ProtocolEngine::run_final_callback() {
  setup_.policy->on_final_callback(*this);
}

void ProtocolEngine::run_step() {
  const EngineCallScope scope(log_, call_event("engine.step"));
  if (setup_.policy->refuses_step()) {
    log_.raise("RuntimeError", "step() called while a backward is incomplete");
  }
  HookEvent step = log_.make(EventKind::opt_step);
  step.engine = setup_.id;
  log_.write(std::move(step));
}

void ProtocolEngine::run_zero_grad() {
  const EngineCallScope scope(log_, call_event("engine.zero_grad"));
}

void ProtocolEngine::run_epilogue(bool is_automatic) {
  const EngineCallScope scope(log_, call_event("engine.backward_epilogue"));
  outcome_.epilogues.push_back({.is_automatic = is_automatic, .works_before = outcome_.works});
  outcome_.unreduced.clear();
  {
    const EngineCallScope of_optimizer(log_, call_event("epilogue"));  // replay reads it as such
    setup_.policy->set_epilogue_ran(true);
  }
  setup_.policy->on_epilogue(*this);
}

bool ProtocolEngine::has_callback_api() const {
  return setup_.mode == PolicyMode::graph_task_callback;
}

GraphTaskId ProtocolEngine::current_graph_task() const {
  return log_.current_graph_task();
}

void ProtocolEngine::queue_callback() {
  ++queued_callbacks_;
  HookEvent event =
      log_.make(EventKind::cb_queue, fmt::format("{}:post_backward", setup_.spec->name));
  event.engine = setup_.id;
  log_.write(std::move(event));
}

std::int32_t ProtocolEngine::count_expected_hooks() {
  ZP_CHECK(running_task_ != nullptr, "the expected count needs a graph task (E26)");
  std::set<std::string_view> params;  // tied parameters count once
  for (const ProtocolNode& node : running_task_->nodes) {
    if (node.kind == NodeKind::accumulate && node.engine == setup_.id) params.insert(node.param);
  }
  ++outcome_.expected_counts;
  const auto expected = static_cast<std::int32_t>(params.size()) + setup_.spec->idle_leaf_modules;
  HookEvent mark = log_.make(EventKind::mark, fmt::format("count_used_parameters:{}", expected));
  mark.engine = setup_.id;
  log_.write(std::move(mark));
  return expected;
}

// docs/spec/zero.md 2.8. `scale()` is never called by these programs, so a needed scaler is E2.
void ProtocolEngine::run_post_hook() {
  const EngineCallScope scope(log_, call_event("engine.backward_post_hook"));
  if (tracker_.is_backward_marked()) return;
  if (setup_.policy->skips_manual_epilogue()) {
    HookEvent mark = log_.make(EventKind::mark, "manual_epilogue_skipped");
    mark.engine = setup_.id;
    return log_.write(std::move(mark));
  }
  if (setup_.spec->requires_scale) {
    log_.raise("RuntimeError", "Loss scaling is required (E2)");
  }
  run_epilogue(true);
}

void ProtocolEngine::abandon_gradients() {
  outcome_.unreduced.clear();
  HookEvent mark = log_.make(EventKind::mark, "backward_abandoned");
  mark.engine = setup_.id;
  log_.write(std::move(mark));
}

void ProtocolEngine::on_manager_call(ManagerMethod method, const BackwardState& before,
                                     std::optional<std::int64_t> argument) {
  HookEvent event = log_.make(EventKind::bhs_call, manager_method_name(method));
  event.engine = setup_.id;
  event.manager = before;
  event.argument = argument;
  log_.write(std::move(event));
}

void ProtocolEngine::on_manager_return(ManagerMethod method, const BackwardState& after,
                                       std::optional<bool> returned, bool raised) {
  HookEvent event = log_.make(EventKind::bhs_return, manager_method_name(method));
  event.engine = setup_.id;
  event.manager = after;
  event.returned = returned;
  if (raised) event.exception = log_.last_raised();
  log_.write(std::move(event));
}

void ProtocolEngine::append_state(std::string& bytes) const {
  setup_.policy->append_state(bytes);
  tracker_.append_state(bytes);
  for (const auto& [forward, task] : prologues_) {
    bytes += forward;
    append_bytes(bytes, task);
  }
  append_bytes(bytes, queued_callbacks_);
}

}  // namespace zeroproof

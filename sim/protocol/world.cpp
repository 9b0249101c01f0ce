#include "sim/protocol/world.h"

#include <string_view>
#include <utility>

#include "model/check.h"
#include "sim/fingerprint.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {

struct ProtocolWorld::RunningTask {
  const GraphTaskProgram* program = nullptr;
  GraphTaskId id;
  std::unique_ptr<TaskSchedule> schedule;
  std::vector<EngineId> final_callbacks;  // in order of queueing (rule C2)
  std::size_t callbacks_run = 0;
};

namespace {

std::unique_ptr<HookPolicy> policy_of(const ProtocolSetup& setup) {
  if (setup.make_policy) return setup.make_policy();
  auto policy = make_policy(setup.policy, setup.mode);
  ZP_CHECK(policy.has_value(), policy.error().text);
  return std::move(*policy);
}

}  // namespace

ProtocolWorld::ProtocolWorld(const ProtocolProgram& program, const ProtocolSetup& setup,
                             NameTable& names, EventSink& sink)
    : program_(program), setup_(setup), log_(names, sink) {
  for (std::size_t index = 0; index < program.engines.size(); ++index) {
    engines_.push_back(std::make_unique<ProtocolEngine>(
        ProtocolEngine::Setup{.id = EngineId{static_cast<std::int32_t>(index)},
                              .spec = &program.engines[index],
                              .policy = policy_of(setup),
                              .mode = setup.mode},
        log_));
  }
}

ProtocolWorld::~ProtocolWorld() = default;

void ProtocolWorld::run(Chooser& chooser) {
  chooser_ = &chooser;
  for (const Statement& statement : program_.statements) {
    try {
      run_statement(statement);
    } catch (const SimulatedException& raised) {
      report_exception(raised);
    }
    ++statement_;
  }
}

std::vector<EngineOutcome> ProtocolWorld::outcomes() const {
  std::vector<EngineOutcome> outcomes;
  for (const auto& engine : engines_) outcomes.push_back(engine->outcome());
  return outcomes;
}

void ProtocolWorld::run_statement(const Statement& statement) {
  switch (statement.kind) {
    case StatementKind::forward:
      return run_forward(statement.forward);
    case StatementKind::backward:
      return statement.is_through_engine ? run_engine_backward(statement)
                                         : run_graph_task(statement.task);
    case StatementKind::step:
      return engine(statement.engine).run_step();
    case StatementKind::zero_grad:
      return engine(statement.engine).run_zero_grad();
  }
}

void ProtocolWorld::run_forward(const ForwardCall& forward) {
  ProtocolEngine& owner = engine(forward.engine);
  HookEvent call = owner.call_event("engine.forward");
  call.manager = owner.policy().state();
  const EngineCallScope scope(log_, std::move(call));
  owner.begin_forward();
  try {
    for (const TaskIndex task : forward.pre_user_backwards) run_graph_task(task);
  } catch (const SimulatedException&) {
    owner.end_forward();
    throw;
  }
  owner.end_forward();
  collect_callbacks();
}

// docs/spec/zero.md 2.9: backward, then the explicit epilogue.
void ProtocolWorld::run_engine_backward(const Statement& statement) {
  ProtocolEngine& owner = engine(statement.engine);
  const EngineCallScope scope(log_, owner.call_event("engine.backward"));
  owner.begin_backward();
  try {
    run_graph_task(statement.task);
    owner.run_epilogue(false);
  } catch (const SimulatedException&) {
    owner.end_backward(true);
    throw;
  }
  owner.end_backward(false);
}

void ProtocolWorld::run_graph_task(TaskIndex task) {
  auto running = std::make_unique<RunningTask>();
  running->program = &program_.task(task);
  running->schedule = make_task_schedule(*running->program, setup_.order_model);
  running->id = log_.begin_graph_task();
  running_.push_back(std::move(running));
  for (const auto& one : engines_)
    one->begin_graph_task(running_.back()->id, running_.back()->program);
  try {
    run_nodes(*running_.back());
    run_final_callbacks(*running_.back());
  } catch (const SimulatedException& raised) {
    end_graph_task(&raised);
    throw;
  }
  end_graph_task(nullptr);
}

// Nodes, then callbacks: an exception drops what is left of both (C6).
void ProtocolWorld::run_nodes(RunningTask& running) {
  while (!running.schedule->is_done()) {
    const auto ask = [&](const std::vector<std::size_t>& ready) {
      std::vector<std::string_view> options;
      for (const std::size_t node : ready) options.push_back(running.program->nodes[node].id);
      return chooser_->choose(
          {.site = "graph_task.ready", .options = options, .state = fingerprint()});
    };
    run_node(running.program->nodes[running.schedule->next(ask)]);
    collect_callbacks();
  }
}

void ProtocolWorld::run_node(const ProtocolNode& node) {
  switch (node.kind) {
    case NodeKind::op:
      return;
    case NodeKind::output_hook:
      return engine(node.engine).run_output_hook(node.forward);
    case NodeKind::accumulate:
      return engine(node.engine).run_gradient_hook(node.param);
    case NodeKind::recompute:
      return run_recompute(node);
    case NodeKind::raise:
      log_.raise("ValueError", "raised by node " + node.id);
  }
}

void ProtocolWorld::run_recompute(const ProtocolNode& node) {
  log_.write(EventKind::ckpt_recompute_begin, node.id);
  if (node.recomputed) run_forward(*node.recomputed);
  run_graph_task(node.nested);
  log_.write(EventKind::ckpt_recompute_end, node.id);
}

void ProtocolWorld::run_final_callbacks(RunningTask& running) {
  while (running.callbacks_run < running.final_callbacks.size()) {
    ProtocolEngine& owner = engine(running.final_callbacks[running.callbacks_run++]);
    HookEvent begin = log_.make(EventKind::cb_begin, "post_backward");
    begin.engine = owner.id();
    log_.write(std::move(begin));
    owner.run_final_callback();
    HookEvent end = log_.make(EventKind::cb_end, "post_backward");
    end.engine = owner.id();
    log_.write(std::move(end));
    collect_callbacks();
  }
}

void ProtocolWorld::collect_callbacks() {
  for (const auto& one : engines_) {
    for (int left = one->take_queued_callbacks(); left > 0; --left) {
      ZP_CHECK(!running_.empty(), "a callback was queued outside any graph task (C1)");
      running_.back()->final_callbacks.push_back(one->id());
    }
  }
}

void ProtocolWorld::end_graph_task(const SimulatedException* raised) {
  const GraphTaskId id = running_.back()->id;
  log_.end_graph_task(raised == nullptr ? std::string_view() : raised->type);
  running_.pop_back();
  const GraphTaskProgram* parent = running_.empty() ? nullptr : running_.back()->program;
  for (const auto& one : engines_) {
    one->take_queued_callbacks();  // queued by a node that raised: dropped with its task
    one->end_graph_task(id, raised != nullptr, parent);
  }
  collect_callbacks();
}

void ProtocolWorld::report_exception(const SimulatedException& raised) {
  HookEvent event = log_.make(EventKind::exc, raised.type);
  event.message = log_.names().intern(raised.message);
  log_.write(std::move(event));
}

Fingerprint ProtocolWorld::fingerprint() const {
  StateBytes state;
  state.add(statement_);
  state.add_from([&](std::string& bytes) { log_.append_state(bytes); });
  for (const auto& task : running_) {
    state.add_from([&](std::string& bytes) { task->schedule->append_state(bytes); });
    state.add(task->callbacks_run);
    state.add_from([&](std::string& bytes) {
      for (const EngineId queued : task->final_callbacks) append_bytes(bytes, queued.value);
    });
  }
  for (const auto& one : engines_) {
    state.add_from([&](std::string& bytes) { one->append_state(bytes); });
  }
  if (watcher_state_) state.add_from([&](std::string& bytes) { watcher_state_(bytes); });
  return state.fingerprint();
}

}  // namespace zeroproof

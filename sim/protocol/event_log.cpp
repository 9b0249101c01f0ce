#include "sim/protocol/event_log.h"

#include <exception>
#include <utility>

#include "zeroproof/model/state_bytes.h"

namespace zeroproof {

HookEvent EventLog::make(EventKind kind, std::string_view name) {
  HookEvent event;
  event.kind = kind;
  event.graph_task = current_graph_task();
  event.depth = static_cast<std::int32_t>(open_tasks_.size());
  if (!name.empty()) event.name = names_.intern(name);
  return event;
}

void EventLog::write(HookEvent event) {
  event.lc = ++lc_;
  event.time_ns = static_cast<std::int64_t>(lc_) * 1000;  // virtual: one microsecond an event
  sink_.on_event(event);
}

GraphTaskId EventLog::begin_graph_task() {
  HookEvent event = make(EventKind::gt_begin);
  const GraphTaskId task{next_task_++};
  event.graph_task = task;
  event.call = task.value;
  if (!open_tasks_.empty()) event.parent_call = open_tasks_.back().value;
  write(std::move(event));
  open_tasks_.push_back(task);
  return task;
}

void EventLog::end_graph_task(std::string_view exception) {
  const GraphTaskId task = open_tasks_.back();
  open_tasks_.pop_back();
  HookEvent event = make(EventKind::gt_end);
  event.graph_task = task;
  event.call = task.value;
  if (!exception.empty()) event.exception = names_.intern(exception);
  write(std::move(event));
}

void EventLog::raise(std::string_view type, std::string message) {
  last_raised_ = names_.intern(type);
  throw SimulatedException{std::string(type), std::move(message)};
}

GraphTaskId EventLog::current_graph_task() const {
  return open_tasks_.empty() ? GraphTaskId::none() : open_tasks_.back();
}

void EventLog::append_state(std::string& bytes) const {
  append_bytes(bytes, next_task_);
  for (const GraphTaskId task : open_tasks_) append_bytes(bytes, task.value);
}

EngineCallScope::EngineCallScope(EventLog& log, HookEvent call)
    : log_(log), uncaught_(std::uncaught_exceptions()) {
  closing_ = log_.make(EventKind::engine_return);
  closing_.name = call.name;
  closing_.param = call.param;
  log_.write(std::move(call));
}

EngineCallScope::~EngineCallScope() noexcept(false) {
  if (std::uncaught_exceptions() > uncaught_) closing_.exception = log_.last_raised();
  log_.write(std::move(closing_));
}

}  // namespace zeroproof

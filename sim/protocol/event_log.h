#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// An exception of the simulated user code or engine.
struct SimulatedException {
  std::string type;
  std::string message;
};

// Writes the events of a simulated process: numbers them, stamps the current graph task, hands
// them to a sink. One per execution; not thread-safe.
class EventLog {
 public:
  // Both must outlive the log.
  EventLog(NameTable& names, EventSink& sink) : names_(names), sink_(sink) {}

  NameTable& names() { return names_; }

  // A new event of `kind` about `name`, not yet written.
  HookEvent make(EventKind kind, std::string_view name = {});
  void write(HookEvent event);
  void write(EventKind kind, std::string_view name) { write(make(kind, name)); }

  // Opens and closes a graph task; tasks nest. Ids count up from 0 (rule G1).
  GraphTaskId begin_graph_task();
  void end_graph_task(std::string_view exception);

  GraphTaskId current_graph_task() const;

  // Throws SimulatedException; brackets that it leaves are closed with its type.
  [[noreturn]] void raise(std::string_view type, std::string message);
  NameId last_raised() const { return last_raised_; }

  std::uint64_t events_written() const { return lc_; }

  void append_state(std::string& bytes) const;

 private:
  NameTable& names_;
  EventSink& sink_;
  std::uint64_t lc_ = 0;
  std::int64_t next_task_ = 0;
  std::vector<GraphTaskId> open_tasks_;
  NameId last_raised_;
};

// engine.call and engine.return around a scope. The return says which exception passed, if any.
class EngineCallScope {
 public:
  EngineCallScope(EventLog& log, HookEvent call);
  ~EngineCallScope() noexcept(false);
  EngineCallScope(const EngineCallScope&) = delete;
  EngineCallScope& operator=(const EngineCallScope&) = delete;

 private:
  EventLog& log_;
  HookEvent closing_;
  int uncaught_;
};

}  // namespace zeroproof

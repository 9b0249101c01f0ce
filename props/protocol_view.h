#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "props/parameter_book.h"
#include "props/task_tree.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"
#include "zeroproof/props/fact.h"

namespace zeroproof {

// Reads the raw events of one rank in the alphabet of docs/spec/zero.md 0.4: which engine, which
// graph task, inside which brackets. Done once, shared by all properties.
//
// Brackets nest per thread, but the work of a graph task may run on another thread than its
// caller, so "inside engine.backward" is a fact of the rank. Not thread-safe. Memory is bounded
// by what is open and by the number of engines.
class ProtocolView {
 public:
  // `names` holds the names of the events and must outlive the view.
  explicit ProtocolView(const NameTable& names);

  // A parameter of the run, in the order of declaration: with several engines the first
  // component of the name gives the engine, the engines being numbered in that order.
  void declare_param(std::string_view name);

  // A parameter that the loss also reaches past the engine's outputs: its hook may run before the
  // prologue. The same can be said by an event `mark` with label `reachable_without_output`.
  void declare_bypass(NameId param) { bypassing_.insert(param); }

  // What the event means: usually one fact, never none. Valid until the next call.
  std::span<const Fact> apply(const HookEvent& event);

  // Whether any engine.* method was seen: without one there is no protocol to judge.
  bool has_engine() const { return !engines_.empty(); }

  // No graph task and no engine.backward is open.
  bool is_quiet() const;

  const NameTable& names() const { return *names_; }

  // Everything that can influence a later fact.
  void append_state(std::string& bytes) const;

 private:
  struct Bracket {
    NameId name;
    Method method = Method::other;
    EngineId engine;
    EventKind kind = EventKind::unknown;  // the opening kind
    std::int64_t task = -1;
    std::int64_t micro_step = -1;
    std::uint64_t lc = 0;
    bool has_seen_error = false;     // something inside it raised
    bool has_asked_manager = false;  // grad_hook: the manager was asked,
    bool has_told_manager = false;   // and notified that the work is done
  };
  struct Engine {
    std::int32_t open_forwards = 0;
    std::int32_t open_backwards = 0;
    std::int32_t forwards = 0;
    std::optional<BackwardState> manager;
    std::vector<BackwardTally> pending;  // tasks that ended inside engine.backward
  };
  using Stack = std::vector<Bracket>;

  Fact& add(FactKind kind, const HookEvent& event, EngineId engine);
  void add_done(BackwardTally tally, const HookEvent& event);
  void begin_task(const HookEvent& event);
  void end_task(const HookEvent& event);
  void settle(BackwardTally tally, const HookEvent& event);
  void open_bracket(const HookEvent& event);
  void close_bracket(const HookEvent& event);
  void begin_method(const HookEvent& event, const Bracket& bracket);
  void end_method(const HookEvent& event, const Bracket& bracket, bool raised);
  void begin_epilogue(const HookEvent& event, EngineId engine, bool is_automatic);
  void note_manager(const HookEvent& event, EngineId engine);
  void read_mark(const HookEvent& event);
  void handle_callback(const HookEvent& event);
  void drop_brackets_of(std::int64_t task);
  bool is_user_gather(const HookEvent& event) const;

  EngineId engine_of(const HookEvent& event) const;
  EngineId engine_of_param(NameId param) const;
  const Bracket* enclosing(const HookEvent& event, Method method) const;
  std::int64_t current_task(const HookEvent& event) const;
  std::int64_t micro_step_of(const HookEvent& event) const;
  Stack& stack(const HookEvent& event) { return stacks_[event.thread]; }

  const NameTable* names_;
  MethodTable methods_;
  std::map<EngineId, Engine> engines_;
  std::map<std::int32_t, Stack> stacks_;  // by thread
  TaskTree tasks_;
  std::vector<std::string> prefixes_;  // first components of parameter names
  std::set<NameId> bypassing_;
  ParameterBook parameters_;       // without the event that is applied now
  std::optional<HookEvent> last_;  // which it does not have yet
  std::vector<Fact> facts_;
  std::deque<BackwardTally> done_;  // deque: facts point into it
};

}  // namespace zeroproof

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeroproof/engine/hooks/policies.h"
#include "zeroproof/internal/engine/hooks/hook_state_manager.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// The first place where a manager of ours and the recorded one differ.
struct StateMismatch {
  std::uint64_t lc = 0;
  EngineId engine;
  std::string text;  // method, field, recorded and derived value
};

struct StateReport {
  std::string policy;
  PolicyMode mode = PolicyMode::graph_task_callback;
  std::uint64_t calls = 0;    // recorded manager calls, nested ones included
  std::uint64_t matched = 0;  // of these: state before, state after and result all derived
  std::optional<StateMismatch> first_mismatch;

  bool is_applicable() const { return calls > 0; }
};

// The state level of replay: drives a policy's hook-state manager with the recorded manager
// calls and compares every state and result. Each engine has its own manager, which starts as
// constructed; the recording supplies only the arguments of calls, the graph task
// they ran in, exceptions that passed, and that an optimizer's epilogue ran.
//
// Events arrive in order of their logical clock. Memory is bounded by the longest outermost
// manager call, not by the trace. Not thread-safe.
class StateLevel {
 public:
  // Error when the policy is unknown or has no manager. `names` must outlive the level.
  static Result<StateLevel> make(std::string_view policy, PolicyMode mode, const NameTable& names);

  StateLevel(StateLevel&&) noexcept;
  ~StateLevel();

  // Declares the parameters in order: with several engines the first component of a name shows
  // whose it is.
  void declare_param(std::string_view name);

  void on_event(const HookEvent& event);

  // After the last event.
  StateReport finish();

 private:
  struct Impl;
  explicit StateLevel(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace zeroproof

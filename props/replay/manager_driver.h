#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "props/replay/state_level.h"
#include "zeroproof/engine/hooks/hook_host.h"
#include "zeroproof/internal/engine/hooks/hook_state_manager.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// One recorded event that concerns a manager: bhs.call, bhs.return, or an optimizer's method that
// writes `epilogue_ran`.
struct ManagerEntry {
  HookEvent event;
  EngineId engine;
  std::optional<bool> epilogue_ran;  // what the optimizer wrote
};

// Runs one outermost recorded manager call against our managers. Inside the post hook the
// recording gives what the engine did: nested manager calls, an epilogue, an exception.
class ManagerDriver final : private HookHost, private ManagerObserver {
 public:
  // The names must outlive the driver.
  ManagerDriver(ManagerRules rules, PolicyMode mode, const NameTable& names)
      : rules_(rules), mode_(mode), names_(names) {}

  // `entries` starts with a bhs.call and ends with its bhs.return.
  void drive(const std::vector<ManagerEntry>& entries);

  // An optimizer wrote the flag outside any manager call.
  void set_epilogue_ran(EngineId engine, bool ran);

  // What happened up to here was not recorded: each manager starts again, with the state that its
  // first recorded call found.
  void begin_in_the_middle();

  std::uint64_t calls() const { return calls_; }
  std::uint64_t matched() const { return matched_; }
  const std::optional<StateMismatch>& first_mismatch() const { return first_mismatch_; }

 private:
  // The recorded post hook raised; passes through the manager like the exception did.
  struct RecordedException {};
  // Our manager made a call that the recording does not have.
  struct Diverged {};

  void drive_next_call();
  void invoke(ManagerMethod method, HookStateManager& manager, const HookEvent& call);
  void consume_post_hook();
  HookStateManager& manager(EngineId engine);
  const ManagerEntry* next_entry() const;
  void mismatch(const HookEvent& event, std::string text);
  bool compare_states(const HookEvent& event, const BackwardState& derived, const char* when);

  bool has_callback_api() const override { return mode_ == PolicyMode::graph_task_callback; }
  GraphTaskId current_graph_task() const override { return current_task_; }
  void queue_callback() override {}
  std::int32_t count_expected_hooks() override { return 0; }
  void run_post_hook() override { consume_post_hook(); }
  void abandon_gradients() override {}

  void on_manager_call(ManagerMethod method, const BackwardState& before,
                       std::optional<std::int64_t> argument) override;
  void on_manager_return(ManagerMethod method, const BackwardState& after,
                         std::optional<bool> returned, bool raised) override;

  ManagerRules rules_;
  PolicyMode mode_;
  const NameTable& names_;
  std::map<EngineId, std::unique_ptr<HookStateManager>> managers_;
  bool adopts_ = false;
  const std::vector<ManagerEntry>* entries_ = nullptr;
  std::size_t position_ = 0;
  GraphTaskId current_task_;
  std::vector<bool> is_matching_;  // per open call
  std::uint64_t calls_ = 0;
  std::uint64_t matched_ = 0;
  std::optional<StateMismatch> first_mismatch_;
};

}  // namespace zeroproof

#include "props/replay/state_level.h"

#include <fmt/format.h>

#include <utility>

#include "engine/hooks/manager_policy.h"
#include "props/mark.h"
#include "props/replay/engine_finder.h"
#include "props/replay/manager_driver.h"

namespace zeroproof {
namespace {

// The outermost manager call that is open on one thread.
struct Window {
  std::vector<ManagerEntry> entries;
  int open_calls = 0;
};

}  // namespace

struct StateLevel::Impl {
  Impl(std::string policy_id, ManagerRules rules, PolicyMode policy_mode,
       const NameTable& event_names)
      : policy(std::move(policy_id)),
        mode(policy_mode),
        names(event_names),
        finder(event_names),
        driver(rules, policy_mode, event_names) {}

  // zero_semantics 2.18. Stages 1 and 2 set the flag where they reduce, which stage 1 does at a
  // boundary only; an engine that sets it in every epilogue shows it in its next state.
  std::optional<EpilogueWrite> epilogue_flag_written(const HookEvent& event) const {
    if (event.kind != EventKind::engine_return || event.is_exceptional()) return std::nullopt;
    const std::string_view method = names.text(event.name);
    if (method == "z12.independent_gradient_partition_epilogue" ||
        method == "z3.backward_epilogue" || method == "epilogue")
      return EpilogueWrite::set;
    if (method == "z12.backward_epilogue") return EpilogueWrite::possible;
    if (method == "z3.step" || method == "z3.zero_grad") return EpilogueWrite::cleared;
    return std::nullopt;
  }

  // A recorder says so where it begins with another optimizer step than the first, or goes on
  // after steps that it left out.
  bool is_beginning_in_the_middle(const HookEvent& event) const {
    return event.kind == EventKind::mark &&
           mark_number(names.text(event.name), "recorded_step").value_or(0) > 0;
  }

  void on_event(const HookEvent& event) {
    if (is_beginning_in_the_middle(event)) driver.begin_in_the_middle();
    const EngineId engine = finder.find(event);
    Window& window = windows[event.thread];
    const std::optional<EpilogueWrite> written = epilogue_flag_written(event);
    if (written && window.open_calls == 0) return driver.write_epilogue_ran(engine, *written);
    const bool is_call = event.kind == EventKind::bhs_call;
    const bool is_return = event.kind == EventKind::bhs_return;
    if (!is_call && !is_return && !written) return;
    if (is_return && window.open_calls == 0) return;  // its call lies before the recording
    window.entries.push_back({event, engine, written});
    if (is_call) ++window.open_calls;
    if (is_return) --window.open_calls;
    if (window.open_calls > 0) return;
    driver.drive(window.entries);
    window.entries.clear();
  }

  std::string policy;
  PolicyMode mode;
  const NameTable& names;
  EngineFinder finder;
  ManagerDriver driver;
  std::map<std::int32_t, Window> windows;  // by thread
};

Result<StateLevel> StateLevel::make(std::string_view policy, PolicyMode mode,
                                    const NameTable& names) {
  const auto info = find_policy(policy);
  if (!info) return tl::unexpected(info.error());
  if (!(*info)->has_manager) {
    return fail(ErrorCode::usage,
                fmt::format("policy '{}' has no hook-state manager that recorded calls could "
                            "drive: use pr7780, pr7886, pr8245 or x2",
                            policy));
  }
  const std::unique_ptr<HookPolicy> made = (*info)->make();
  const auto* manager_policy = static_cast<const ManagerPolicy*>(made.get());
  return StateLevel(
      std::make_unique<Impl>(std::string(policy), manager_policy->rules().manager, mode, names));
}

StateLevel::StateLevel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StateLevel::StateLevel(StateLevel&&) noexcept = default;
StateLevel::~StateLevel() = default;

void StateLevel::declare_param(std::string_view name) {
  impl_->finder.declare_param(name);
}

void StateLevel::on_event(const HookEvent& event) {
  impl_->on_event(event);
}

StateReport StateLevel::finish() {
  return {.policy = impl_->policy,
          .mode = impl_->mode,
          .calls = impl_->driver.calls(),
          .matched = impl_->driver.matched(),
          .first_mismatch = impl_->driver.first_mismatch()};
}

}  // namespace zeroproof

#include "props/replay/state_level.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/hooks/manager_policy.h"
#include "props/mark.h"
#include "props/replay/engine_finder.h"
#include "props/replay/manager_driver.h"

namespace zeroproof {
namespace {

// docs/spec/zero.md 2.18. The epilogue of the partitions sets the flag. Stage 1 runs it at a
// boundary alone, and a coalesced block after its backwards: their own epilogues leave the flag as
// it is.
struct EpilogueWrite {
  std::string_view method;
  bool ran;
};

constexpr std::array kEpilogueWrites = {
    EpilogueWrite{"z12.independent_gradient_partition_epilogue", true},
    EpilogueWrite{"z3.independent_gradient_partition_epilogue", true},
    EpilogueWrite{"epilogue", true},  // of a simulated engine
    EpilogueWrite{"z3.pre_step", false},
    EpilogueWrite{"z3.step", false},
    EpilogueWrite{"z3.zero_grad", false},
};

// The outermost manager call that is open on one thread.
struct Window {
  std::vector<ManagerEntry> entries;
  int open_calls = 0;
};

std::vector<std::string_view> policies_with_manager() {
  std::vector<std::string_view> ids;
  for (const PolicyInfo& info : policy_catalogue())
    if (info.has_manager) ids.push_back(info.id);
  return ids;
}

}  // namespace

struct StateLevel::Impl {
  Impl(std::string policy_id, ManagerRules rules, PolicyMode policy_mode,
       const NameTable& event_names)
      : policy(std::move(policy_id)),
        mode(policy_mode),
        names(event_names),
        finder(event_names),
        driver(rules, policy_mode, event_names) {}

  // What a method of an optimizer that ended wrote to `epilogue_ran`; nullopt for most.
  std::optional<bool> epilogue_flag_written(const HookEvent& event) const {
    if (event.kind != EventKind::engine_return || event.is_exceptional()) return std::nullopt;
    const std::string_view method = names.text(event.name);
    const auto at = std::ranges::find(kEpilogueWrites, method, &EpilogueWrite::method);
    return at == kEpilogueWrites.end() ? std::nullopt : std::optional(at->ran);
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
    const std::optional<bool> written = epilogue_flag_written(event);
    if (written && window.open_calls == 0) return driver.set_epilogue_ran(engine, *written);
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
                            "drive: use {}",
                            (*info)->id, fmt::join(policies_with_manager(), ", ")));
  }
  const std::unique_ptr<HookPolicy> made = (*info)->make();
  const auto* manager_policy = static_cast<const ManagerPolicy*>(made.get());
  return StateLevel(std::make_unique<Impl>(std::string((*info)->id),
                                           manager_policy->rules().manager, mode, names));
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

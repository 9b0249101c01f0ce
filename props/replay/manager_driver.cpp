#include "props/replay/manager_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace zeroproof {
namespace {

struct StateField {
  const char* name;
  std::int64_t (*value)(const BackwardState&);
};

constexpr std::array kStateFields = {
    StateField{"remaining_grad_acc_hooks",
               [](const BackwardState& s) -> std::int64_t { return s.remaining_hooks; }},
    StateField{"len(_grad_acc_post_hooks)",
               [](const BackwardState& s) -> std::int64_t { return s.post_hooks; }},
    StateField{"backward_active_depth",
               [](const BackwardState& s) -> std::int64_t { return s.active_depth; }},
    StateField{"backward_seen_this_step",
               [](const BackwardState& s) -> std::int64_t { return s.is_backward_seen_this_step; }},
    StateField{"epilogue_ran_this_backward",
               [](const BackwardState& s) -> std::int64_t { return s.ran_epilogue_this_backward; }},
    StateField{"hooks_fired_this_backward",
               [](const BackwardState& s) -> std::int64_t { return s.hooks_fired; }},
    StateField{"max_expected_hooks_seen",
               [](const BackwardState& s) -> std::int64_t { return s.max_expected_hooks; }},
    StateField{"post_backward_callback_queued",
               [](const BackwardState& s) -> std::int64_t { return s.is_callback_queued; }},
    StateField{"post_backward_callback_graph_task_id",
               [](const BackwardState& s) -> std::int64_t { return s.callback_graph_task.value; }},
};

bool is_engine_call(const ManagerEntry& entry) {
  return entry.event.kind == EventKind::bhs_call;
}
bool is_return(const ManagerEntry& entry) {
  return entry.event.kind == EventKind::bhs_return;
}

std::string_view text_of(std::optional<bool> value) {
  if (!value) return "no value";
  return *value ? "true" : "false";
}

}  // namespace

void ManagerDriver::drive(const std::vector<ManagerEntry>& entries) {
  entries_ = &entries;
  position_ = 0;
  is_matching_.clear();
  calls_ +=
      static_cast<std::uint64_t>(std::count_if(entries.begin(), entries.end(), is_engine_call));
  try {
    drive_next_call();
  } catch (const RecordedException&) {
    // The recording says so, and the observer compared it.
  } catch (const Diverged&) {
    // Reported; the calls that are left in this window stay unmatched.
  }
  entries_ = nullptr;
}

void ManagerDriver::set_epilogue_ran(EngineId engine, bool ran) {
  if (adopts_ && !managers_.contains(engine)) return;  // the first call gives the state
  manager(engine).set_epilogue_ran(ran);
}

void ManagerDriver::begin_in_the_middle() {
  managers_.clear();
  adopts_ = true;
}

void ManagerDriver::drive_next_call() {
  const ManagerEntry& call = (*entries_)[position_];
  const auto method = manager_method_of(names_.text(call.event.name));
  if (!method) {
    mismatch(call.event, fmt::format("unknown manager method '{}'", names_.text(call.event.name)));
    throw Diverged{};
  }
  current_task_ = call.event.graph_task;
  invoke(*method, manager(call.engine), call.event);
}

void ManagerDriver::invoke(ManagerMethod method, HookStateManager& manager, const HookEvent& call) {
  switch (method) {
    case ManagerMethod::enter_backward:
      return manager.enter_backward();
    case ManagerMethod::exit_backward:
      return manager.exit_backward();
    case ManagerMethod::reset_for_new_step:
      manager.reset_for_new_step();
      return;
    case ManagerMethod::should_refresh_expected_hook_count:
      manager.should_refresh_expected_hook_count();
      return;
    case ManagerMethod::reenter_backward_if_needed:
      return manager.reenter_backward_if_needed();
    case ManagerMethod::queue_post_backward_callback:
      manager.queue_post_backward_callback(*this);
      return;
    case ManagerMethod::update_hook_state_and_maybe_run_epilogue:
      return manager.update_hook_state_and_maybe_run_epilogue(
          *this, static_cast<std::int32_t>(call.argument.value_or(0)));
    case ManagerMethod::run_grad_acc_post_hooks:
      return manager.run_grad_acc_post_hooks(*this);
  }
}

// What the engine did inside its post hook, up to the return of the manager call around it.
void ManagerDriver::consume_post_hook() {
  while (const ManagerEntry* entry = next_entry()) {
    if (is_return(*entry)) {
      if (entry->event.is_exceptional()) throw RecordedException{};
      return;
    }
    if (is_engine_call(*entry)) {
      drive_next_call();
    } else {
      set_epilogue_ran(entry->engine, *entry->epilogue_ran);
      ++position_;
    }
  }
}

HookStateManager& ManagerDriver::manager(EngineId engine) {
  std::unique_ptr<HookStateManager>& slot = managers_[engine];
  if (!slot) {
    slot = std::make_unique<HookStateManager>(rules_);
    slot->register_post_hook();
    const ManagerEntry* first = entries_ == nullptr ? nullptr : next_entry();
    if (adopts_ && first != nullptr && first->event.manager) slot->adopt(*first->event.manager);
    slot->set_observer(this);
  }
  return *slot;
}

const ManagerEntry* ManagerDriver::next_entry() const {
  return position_ < entries_->size() ? &(*entries_)[position_] : nullptr;
}

void ManagerDriver::mismatch(const HookEvent& event, std::string text) {
  if (!is_matching_.empty()) is_matching_.back() = false;
  if (first_mismatch_) return;
  const ManagerEntry* entry = next_entry();
  first_mismatch_ = StateMismatch{.lc = event.lc,
                                  .engine = entry == nullptr ? EngineId::none() : entry->engine,
                                  .text = std::move(text)};
}

bool ManagerDriver::compare_states(const HookEvent& event, const BackwardState& derived,
                                   const char* when) {
  if (!event.manager) {
    mismatch(event, fmt::format("{}: the recording has no state", names_.text(event.name)));
    return false;
  }
  if (*event.manager == derived) return true;
  for (const StateField& field : kStateFields) {
    const std::int64_t recorded = field.value(*event.manager);
    if (recorded == field.value(derived)) continue;
    mismatch(event,
             fmt::format("{} {}: {} is {} in the recording, {} derived", when,
                         names_.text(event.name), field.name, recorded, field.value(derived)));
    return false;
  }
  return false;
}

void ManagerDriver::on_manager_call(ManagerMethod method, const BackwardState& before,
                                    std::optional<std::int64_t>) {
  is_matching_.push_back(true);
  const ManagerEntry* entry = next_entry();
  if (entry == nullptr || !is_engine_call(*entry) ||
      names_.text(entry->event.name) != manager_method_name(method)) {
    const HookEvent& at = entry == nullptr ? entries_->back().event : entry->event;
    mismatch(at, fmt::format("the policy calls {} where the recording has {} {}",
                             manager_method_name(method), event_kind_name(at.kind),
                             names_.text(at.name)));
    throw Diverged{};
  }
  compare_states(entry->event, before, "before");
  current_task_ = entry->event.graph_task;
  ++position_;
}

void ManagerDriver::on_manager_return(ManagerMethod method, const BackwardState& after,
                                      std::optional<bool> returned, bool raised) {
  const ManagerEntry* entry = next_entry();
  if (entry == nullptr || !is_return(*entry) ||
      names_.text(entry->event.name) != manager_method_name(method)) {
    const HookEvent& at = entry == nullptr ? entries_->back().event : entry->event;
    mismatch(at, fmt::format("the policy returns from {} where the recording has {} {}",
                             manager_method_name(method), event_kind_name(at.kind),
                             names_.text(at.name)));
    is_matching_.pop_back();
    if (raised) return;  // already leaving
    throw Diverged{};
  }
  const bool is_equal = compare_states(entry->event, after, "after");
  if (is_equal && raised != entry->event.is_exceptional()) {
    mismatch(entry->event,
             fmt::format("after {}: an exception passed in {} only", names_.text(entry->event.name),
                         raised ? "the policy" : "the recording"));
  } else if (is_equal && !raised && returned != entry->event.returned) {
    mismatch(entry->event, fmt::format("after {}: returns {} in the recording, {} derived",
                                       names_.text(entry->event.name),
                                       text_of(entry->event.returned), text_of(returned)));
  }
  if (is_matching_.back()) ++matched_;
  is_matching_.pop_back();
  ++position_;
}

}  // namespace zeroproof

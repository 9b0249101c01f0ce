#include "props/protocol_view.h"

#include <algorithm>
#include <charconv>

namespace zeroproof {
namespace {

constexpr std::string_view kCountLabel = "count_used_parameters:";
constexpr std::string_view kAbandonedLabel = "backward_abandoned";
constexpr std::string_view kGradientsAbandonedLabel = "gradients_abandoned";
constexpr std::string_view kFallbackPrefix = "fallback.";
constexpr std::string_view kBypassLabel = "reachable_without_output";

bool is_engine_event(const HookEvent& event) {
  return event.kind == EventKind::engine_call || event.kind == EventKind::engine_return ||
         event.kind == EventKind::bucket_add || event.kind == EventKind::bucket_flush;
}

}  // namespace

ProtocolView::ProtocolView(const NameTable& names)
    : names_(&names), methods_(names), parameters_(names) {}

bool ProtocolView::is_quiet() const {
  return tasks_.is_empty() && std::all_of(engines_.begin(), engines_.end(), [](const auto& entry) {
           return entry.second.open_backwards == 0;
         });
}

std::span<const Fact> ProtocolView::apply(const HookEvent& event) {
  facts_.clear();
  done_.clear();
  if (last_) parameters_.apply(*last_, methods_.of(last_->name));
  last_.reset();
  if (ParameterBook::is_about(event, methods_.of(event.name))) last_ = event;
  switch (event.kind) {
    case EventKind::gt_begin:
      begin_task(event);
      break;
    case EventKind::gt_end:
      end_task(event);
      break;
    case EventKind::engine_call:
    case EventKind::bhs_call:
      open_bracket(event);
      break;
    case EventKind::engine_return:
    case EventKind::bhs_return:
      close_bracket(event);
      break;
    case EventKind::cb_queue:
    case EventKind::cb_begin:
    case EventKind::cb_end:
      handle_callback(event);
      break;
    case EventKind::opt_zero_grad:
      add(FactKind::zero_grad, event, engine_of(event));
      break;
    case EventKind::mark:
      read_mark(event);
      break;
    case EventKind::coll_issue:
      if (is_user_gather(event)) parameters_.note_unseen_gather();
      add(FactKind::other, event, engine_of(event));
      break;
    default:
      add(FactKind::other, event, engine_of(event));
  }
  return facts_;
}

// A user's gather context, or the construction of another engine. DeepSpeed's own gathers lie
// inside its calls.
bool ProtocolView::is_user_gather(const HookEvent& event) const {
  const auto open = stacks_.find(event.thread);
  const bool is_outside = tasks_.is_empty() && (open == stacks_.end() || open->second.empty());
  return is_outside && names_->text(event.name).starts_with("all_gather");
}

Fact& ProtocolView::add(FactKind kind, const HookEvent& event, EngineId engine) {
  Fact fact;
  const bool is_inert = event.transforms > 0 && is_engine_event(event);
  fact.kind = is_inert ? FactKind::inside_transform : kind;
  fact.event = &event;
  fact.engine = engine;
  if (is_engine_event(event) || event.kind == EventKind::bhs_call ||
      event.kind == EventKind::bhs_return)
    fact.method = methods_.of(event.name);
  fact.task = current_task(event);
  fact.is_bypassing = !event.param.is_none() && bypassing_.contains(event.param);
  fact.user_task = tasks_.user_task(fact.task, engine);
  fact.is_quiet = is_quiet();
  fact.engine_count = static_cast<std::int32_t>(engines_.size());
  fact.live_callbacks = tasks_.live_callbacks(engine);
  fact.parameters = &parameters_;
  fact.micro_step = micro_step_of(event);
  const auto known = engines_.find(engine);
  if (known != engines_.end()) {
    const Engine& state = known->second;
    fact.is_in_forward = state.open_forwards > 0;
    fact.is_in_backward = state.open_backwards > 0;
    fact.forwards = state.forwards;
    if (state.manager) fact.manager = &*state.manager;
    if (fact.user_task < 0 && !state.pending.empty()) fact.user_task = state.pending.back().task;
  }
  facts_.push_back(fact);
  return facts_.back();
}

void ProtocolView::add_done(BackwardTally tally, const HookEvent& event) {
  done_.push_back(tally);
  Fact& fact = add(FactKind::backward_done, event, tally.engine);
  fact.kind = FactKind::backward_done;
  fact.task = fact.user_task = tally.task;
  fact.has_raised = tally.has_raised;
  fact.tally = &done_.back();
}

void ProtocolView::begin_task(const HookEvent& event) {
  if (is_quiet()) tasks_.restart_serials();
  const std::int64_t serial = tasks_.begin(event);
  add(FactKind::task_begin, event, engine_of(event)).task = serial;
}

void ProtocolView::end_task(const HookEvent& event) {
  TaskTree::Task ended = tasks_.end(event);
  if (ended.serial >= 0) drop_brackets_of(ended.serial);
  Fact& fact = add(FactKind::task_end, event, engine_of(event));
  fact.task = ended.serial;
  fact.has_raised = event.is_exceptional();
  for (const BackwardTally& tally : ended.tallies) settle(tally, event);
}

// The epilogue of a task inside engine.backward comes after the task.
void ProtocolView::settle(BackwardTally tally, const HookEvent& event) {
  Engine& engine = engines_[tally.engine];
  if (tally.is_user_backward && engine.open_backwards > 0)
    engine.pending.push_back(tally);
  else
    add_done(tally, event);
}

void ProtocolView::open_bracket(const HookEvent& event) {
  Bracket bracket;
  bracket.name = event.name;
  bracket.method = methods_.of(event.name);
  bracket.engine = engine_of(event);
  bracket.kind = event.kind;
  bracket.task = current_task(event);
  bracket.micro_step = event.micro_step;
  bracket.lc = event.lc;
  if (!event.engine.is_none()) engines_.try_emplace(event.engine);
  note_manager(event, bracket.engine);  // a simulated engine.forward reports it, too
  if (event.kind == EventKind::bhs_call) {
    add(FactKind::manager_call, event, bracket.engine);
  } else {
    begin_method(event, bracket);
  }
  // What the fallback reports are moments, and need no return; only a guard has a body.
  const bool is_moment =
      (bracket.method == Method::other || bracket.method >= Method::fallback_gather) &&
      bracket.method != Method::fallback_guard &&
      names_->text(event.name).starts_with(kFallbackPrefix);
  if (!is_moment) stack(event).push_back(bracket);
}

void ProtocolView::begin_method(const HookEvent& event, const Bracket& bracket) {
  const EngineId engine = bracket.engine;
  const bool is_inert = event.transforms > 0;
  Engine* state = engine.is_none() || is_inert ? nullptr : &engines_[engine];
  switch (bracket.method) {
    case Method::forward:
      if (state != nullptr) state->forwards = std::min(state->forwards + 1, kForwardsMax);
      add(FactKind::forward_begin, event, engine);
      if (state != nullptr) state->open_forwards += 1;
      return;
    case Method::backward:
      if (state != nullptr) state->open_backwards += 1;
      add(FactKind::backward_begin, event, engine);
      return;
    case Method::prologue:
    case Method::output_hook: {
      const bool is_prologue = bracket.method == Method::prologue;
      if (state != nullptr) tasks_.note_output_hook(bracket.task, engine, is_prologue);
      add(is_prologue ? FactKind::prologue_begin : FactKind::output_hook, event, engine);
      return;
    }
    case Method::grad_hook:
      if (state != nullptr) tasks_.note_work(bracket.task, engine, event);
      add(FactKind::work_begin, event, engine);
      return;
    case Method::epilogue: {
      const bool is_open = state != nullptr && state->open_backwards > 0;
      begin_epilogue(event, engine, enclosing(event, Method::post_hook) != nullptr || !is_open);
      return;
    }
    case Method::zero_grad: {
      const bool is_nested = enclosing(event, Method::step) != nullptr ||
                             enclosing(event, Method::zero_grad) != nullptr;
      add(is_nested ? FactKind::other : FactKind::zero_grad, event, engine);
      return;
    }
    case Method::post_hook:
      add(FactKind::post_hook_begin, event, engine);
      return;
    case Method::step:
      add(FactKind::step_begin, event, engine);
      return;
    case Method::model_step:
      add(FactKind::model_step, event, engine);
      return;
    case Method::pre_forward:
      add(FactKind::module_push, event, engine);
      return;
    case Method::post_forward:
      add(FactKind::module_pop, event, engine);
      return;
    default:
      add(FactKind::other, event, engine);
  }
}

void ProtocolView::begin_epilogue(const HookEvent& event, EngineId engine, bool is_automatic) {
  const std::int64_t task = current_task(event);
  if (event.transforms == 0 && !engine.is_none()) {
    std::vector<BackwardTally>& pending = engines_[engine].pending;
    // Its own engine.backward, which another engine's backward may be around.
    const bool is_own = tasks_.user_task(task, engine) >= 0 || pending.empty();
    if (task >= 0 && is_own)
      tasks_.note_epilogue(task, engine);
    else
      for (BackwardTally& tally : pending) tally.epilogues += 1;
  }
  add(FactKind::epilogue_begin, event, engine).is_automatic = is_automatic;
}

void ProtocolView::close_bracket(const HookEvent& event) {
  Stack& open = stack(event);
  const EventKind kind =
      event.kind == EventKind::bhs_return ? EventKind::bhs_call : EventKind::engine_call;
  const auto found = std::find_if(open.rbegin(), open.rend(), [&](const Bracket& bracket) {
    return bracket.name == event.name && bracket.kind == kind;
  });
  if (found == open.rend()) {
    add(FactKind::other, event, engine_of(event));
    return;
  }
  const Bracket bracket = *found;
  open.erase(std::next(found).base(), open.end());
  const bool raised = event.is_exceptional() || bracket.has_seen_error ||
                      (bracket.has_asked_manager && !bracket.has_told_manager);
  if (!open.empty() && event.is_exceptional()) open.back().has_seen_error = true;
  if (kind == EventKind::bhs_call) {
    if (!open.empty() && bracket.method != Method::update) open.back().has_asked_manager = true;
    if (!open.empty() && bracket.method == Method::update && !event.is_exceptional())
      open.back().has_told_manager = true;
    note_manager(event, bracket.engine);
    add(FactKind::manager_return, event, bracket.engine).has_raised = event.is_exceptional();
    return;
  }
  end_method(event, bracket, bracket.method == Method::grad_hook ? raised : event.is_exceptional());
}

void ProtocolView::end_method(const HookEvent& event, const Bracket& bracket, bool raised) {
  const EngineId engine = bracket.engine;
  Engine* state = engine.is_none() || event.transforms > 0 ? nullptr : &engines_[engine];
  FactKind kind = FactKind::other;
  switch (bracket.method) {
    case Method::forward:
      if (state != nullptr) state->open_forwards = std::max(state->open_forwards - 1, 0);
      kind = FactKind::forward_end;
      break;
    case Method::backward:
      if (state != nullptr) state->open_backwards = std::max(state->open_backwards - 1, 0);
      kind = FactKind::backward_end;
      break;
    case Method::prologue:
      kind = FactKind::prologue_end;
      break;
    case Method::grad_hook:
      kind = FactKind::work_end;
      break;
    case Method::post_hook:
      kind = FactKind::post_hook_end;
      break;
    case Method::epilogue:
      kind = FactKind::epilogue_end;
      break;
    case Method::step:
      kind = FactKind::step_end;
      break;
    case Method::grad_epilogue_12:
    case Method::grad_epilogue_3:
      kind = FactKind::grad_epilogue_end;
      break;
    default:
      break;
  }
  Fact& fact = add(kind, event, engine);
  fact.has_raised = raised;
  fact.begin_lc = bracket.lc;
  if (fact.micro_step < 0) fact.micro_step = bracket.micro_step;
  fact.is_automatic = enclosing(event, Method::post_hook) != nullptr;
  if (kind != FactKind::backward_end || state == nullptr || state->open_backwards > 0) return;
  const std::vector<BackwardTally> pending = std::move(state->pending);
  state->pending.clear();
  for (const BackwardTally& tally : pending) add_done(tally, event);
}

void ProtocolView::note_manager(const HookEvent& event, EngineId engine) {
  if (event.manager && !engine.is_none()) engines_[engine].manager = event.manager;
}

void ProtocolView::read_mark(const HookEvent& event) {
  const std::string_view label = names_->text(event.name);
  const EngineId engine = engine_of(event);
  if (label.starts_with(kCountLabel)) {
    std::int64_t count = 0;
    std::from_chars(label.data() + kCountLabel.size(), label.data() + label.size(), count);
    tasks_.note_count(current_task(event), engine, count);
    add(FactKind::count, event, engine).value = count;
  } else if (label == kAbandonedLabel || label == kGradientsAbandonedLabel) {
    add(FactKind::abandoned, event, engine);
  } else {
    if (label == kBypassLabel && !event.param.is_none()) bypassing_.insert(event.param);
    add(FactKind::other, event, engine);
  }
}

void ProtocolView::handle_callback(const HookEvent& event) {
  const std::int64_t task = current_task(event);
  if (event.kind == EventKind::cb_queue) {
    const EngineId engine = engine_of(event);
    tasks_.note_callback(task, engine, event.name);
    add(FactKind::callback_queued, event, engine);
    return;
  }
  Stack& open = stack(event);
  if (event.kind == EventKind::cb_begin) {
    Bracket bracket;
    bracket.name = event.name;
    bracket.kind = event.kind;
    bracket.task = task;
    bracket.engine = tasks_.begin_callback(task, event);
    if (bracket.engine.is_none()) bracket.engine = engine_of(event);
    add(FactKind::callback_begin, event, bracket.engine);
    open.push_back(bracket);
    return;
  }
  const auto found = std::find_if(open.rbegin(), open.rend(), [&](const Bracket& bracket) {
    return bracket.name == event.name && bracket.kind == EventKind::cb_begin;
  });
  const EngineId engine = found == open.rend() ? engine_of(event) : found->engine;
  if (found != open.rend()) open.erase(std::next(found).base(), open.end());
  add(FactKind::callback_end, event, engine);
}

// What an exception left open inside a task ends with the task.
void ProtocolView::drop_brackets_of(std::int64_t task) {
  for (auto& entry : stacks_)
    std::erase_if(entry.second, [&](const Bracket& bracket) { return bracket.task == task; });
}

}  // namespace zeroproof

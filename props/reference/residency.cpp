#include "props/reference/residency.h"
#include "props/reference/methods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace zeroproof::reference {

Residency::Residency(const Surroundings& around)
    : Part(around),
      states_(world_.parameters.size()),
      uses_(world_),
      order_(world_.parameters.size()),
      retained_(world_),
      gathers_(around) {
  for (std::size_t id = 0; id < states_.size(); ++id)
    states_[id].is_returned = parameter(id).is_returned;
}

void Residency::on_event(const HookEvent& event) {
  count_time(event);
  gathers_.on_event(event);
  judge_operations(event);
  switch (event.kind) {
    case EventKind::engine_call:
      return text(event.name) == calls::kContext ? see_context(event) : see_call(event);
    case EventKind::engine_return:
      return text(event.name) == calls::kContext ? see_context(event) : see_return(event);
    case EventKind::module_fwd_pre:
    case EventKind::module_fwd_post:
      return see_forward(event);
    case EventKind::ckpt_recompute_begin:
    case EventKind::ckpt_recompute_end:
      return see_checkpoint(event);
    case EventKind::zmod_fetch:
      return begin_fetch(event);
    case EventKind::zmod_release:
      return begin_release(event);
    case EventKind::zparam_gather_begin:
      return see_gather_begin(event);
    case EventKind::zparam_gather_end:
      return see_gather_end(event);
    case EventKind::zparam_partition:
      return see_partition(event);
    case EventKind::coll_issue:
      if (text(event.name) == "broadcast" && scene_.innermost() == calls::kResetOrder)
        ++comparisons_;
      return;
    case EventKind::gt_end:
      return end_task(event);
    case EventKind::ft_push:
    case EventKind::ft_pop:
      return see_transform(event);
    case EventKind::mark:
      return see_mark(event);
    default:
      return;
  }
}

Residency::Ids Residency::ids_of(const HookEvent& event) {
  Ids ids;
  for (const NameId param : event.params)
    if (const auto id = index_.parameter(param)) ids.push_back(*id);
  return ids;
}

// Parameters at the events that gather, free or use them.
void Residency::count_time(const HookEvent& event) {
  if (event.kind < EventKind::zparam_gather_begin || event.kind > EventKind::zmod_release) return;
  const auto all = static_cast<std::int64_t>(states_.size());
  ledger_.count_parameters(all);
  if (event.transforms > 0) return ledger_.leave_parameters(Freedom::transform, all);
  if (failure_) return ledger_.leave_parameters(*failure_, all);
  if (world_.unseen.gathers_inside) return ledger_.leave_parameters(Freedom::user_context, all);
  for (Id id = 0; id < states_.size(); ++id) {
    const bool is_external = world_.unseen.reads_elsewhere && parameter(id).is_read_elsewhere;
    if (is_external)
      ledger_.leave_parameters(Freedom::external_use, 1);
    else if (states_[id].is_users && !states_[id].is_in_context)
      ledger_.leave_parameters(Freedom::user_context, 1);
    else if (uses_.is_unsure(id))
      ledger_.leave_parameters(Freedom::repeated_module, 1);
    else if (is_order_lost_)
      ledger_.leave_parameters(why_lost(), 1);
  }
}

// Which of the program's freedoms leaves the recorded order open.
Freedom Residency::why_lost() const {
  if (world_.unseen.reads_elsewhere) return Freedom::external_use;
  return world_.unseen.keeps_graphs ? Freedom::retained_graph : Freedom::lost_order;
}

bool Residency::is_judging(const HookEvent& event) const {
  return event.transforms == 0 && !failure_;
}

// 3.9. What it lists stays whole until it ends, no matter who gathered it.
void Residency::see_context(const HookEvent& event) {
  const bool begins = event.kind == EventKind::engine_call;
  if (begins) contexts_.push_back(ids_of(event));
  if (contexts_.empty()) return;
  for (const Id id : contexts_.back()) states_[id].is_in_context = states_[id].is_users = begins;
  if (!begins) contexts_.pop_back();
}

// 3.8. Outside a forward the user registers it.
void Residency::see_external(const HookEvent& event) {
  const std::string_view name = text(event.name).substr(calls::kAddExternal.size());
  const auto is_it = [&](const Module& row) { return row.name == name; };
  const auto module = std::ranges::find_if(world_.modules, is_it);
  const auto id = index_.parameter(event.param);
  if (!id || module == world_.modules.end()) return;
  uses_.add_external(static_cast<Id>(module - world_.modules.begin()), *id);
  has_new_external_ = true;
}

// 3.5: where a module comes that is not next, or uses another parameter, or is a leaf from now on.
void Residency::see_invalidation(const HookEvent& event) {
  const bool was_complete = order_.is_complete();
  const bool is_new_use = std::exchange(has_new_external_, false) || world_.unseen.reads_elsewhere;
  given_up_.reset();
  under_way_.clear();
  for (Id id = 0; id < states_.size(); ++id)
    if (states_[id].where == Where::inflight) under_way_.insert(id);
  if (was_complete && world_.is_ours() && !is_order_lost_) {
    if (scene_.is_in("z3.pre_forward") || scene_.is_in("z3.pre_backward")) {
      given_up_ = order_;
    } else {
      ledger_.judge(Rule::order_kept, is_new_use || world_.unseen.sets_leaves, event.lc,
                    [] { return "the order of modules is given up, and no module left it"; });
    }
  }
  order_.invalidate();
}

void Residency::see_call(const HookEvent& event) {
  const std::string_view method = text(event.name);
  if (method.starts_with(calls::kAddExternal)) return see_external(event);
  const bool is_idle = scene_.graph_tasks() == 0 && uses_.depth() == 0;
  if (method == calls::kResetOrder) {
    ++resets_;
    comparisons_ = 0;
  }
  if (method == calls::kInvalidate) see_invalidation(event);
  if (method == "coord.release_backward_leftovers") end_backwards();
  if (method == calls::kLoad) has_reset_ = false;
  if (method == "z3.post_step") step_gathers_ = 0;
  if (method == calls::kForward) {
    freed_at_end_.clear();
    has_root_ended_ = false;
  }
  if (method == calls::kForward && is_idle) abandoned_.clear();
  const bool begins =
      method == calls::kForward || method == calls::kZeroGrad || method == calls::kStep;
  if (!begins || !is_idle) return;
  if (std::exchange(is_behind_transform_, false)) {
    uses_.clear();
    judge_all_free(event, Rule::free_after_abort, "after a transform");
    before_transform_.clear();
  }
  if (!std::exchange(has_failed_, false)) return;
  judge_all_free(event, Rule::free_after_abort, "after a backward that failed");
}

// What a transform gathers it frees, and what was whole before stays.
void Residency::see_transform(const HookEvent& event) {
  transforms_ += event.kind == EventKind::ft_push ? 1 : -1;
  if (event.kind == EventKind::ft_pop) {
    is_behind_transform_ = transforms_ == 0 && is_alone_;
  } else if (transforms_ == 1) {
    before_transform_.clear();
    is_alone_ = scene_.graph_tasks() == 0 && uses_.depth() == 0;
    for (Id id = 0; id < states_.size(); ++id)
      if (!is_free(id)) before_transform_.insert(id);
  }
}

void Residency::see_return(const HookEvent& event) {
  const std::string_view method = text(event.name);
  if (event.is_exceptional()) {
    const bool may_refuse = config().fp16.enabled && config().fp16.loss_scale == 0.0;
    if (method == "z3.step" && may_refuse && !failure_) judge_persistent(event, "a refused step");
    if (method == calls::kForward) resets_ = 0;
    if (method == calls::kForward && event.transforms == 0) judge_abandoned(event);
    if (method == calls::kEpilogue) has_failed_ = true;
    if (method.starts_with("z3.") || method.starts_with("coord.") || method == calls::kForward ||
        method == calls::kEpilogue)
      failure_ = Freedom::failed_call;
    fetch_.reset();
    release_.reset();
    return;
  }
  if (method == calls::kResetOrder) return judge_comparisons(event);
  if (method == calls::kInvalidate) return judge_under_way(event);
  if (method == "z3.pre_forward" || method == "z3.pre_backward") return end_fetch(event);
  if (method == "z3.post_forward" || method == "z3.post_backward") return end_release(event);
  if (method == calls::kResetAll) {
    uses_.clear();
    retained_.clear();
    has_reset_ = true;
    judge_all_free(event, Rule::free_after_module, "after everything was released");
    for (State& state : states_)
      state = {.is_users = state.is_in_context,
               .is_in_context = state.is_in_context,
               .is_returned = state.is_returned};
  }
  if (method == calls::kEpilogue)
    judge_all_free(event, Rule::free_after_backward, "after the epilogue of a backward");
  if (method == "z3.step") judge_persistent(event, "a step");
  if (method == "z3.post_step" && world_.is_ours())
    ledger_.judge(Rule::persistent_back, step_gathers_ <= 1, event.lc, [&] {
      return fmt::format("a step gathers persistent parameters by {} gathers", step_gathers_);
    });
  if (method == calls::kForward) end_forward(event);
  if (method == calls::kLoad && has_reset_) judge_persistent(event, "a load");
}

void Residency::see_gather_begin(const HookEvent& event) {
  const Ids ids = ids_of(event);
  for (const Id id : ids)
    ledger_.judge(Rule::gather_once, is_free(id), event.lc, [&] {
      return fmt::format("{} is gathered, and is whole or on its way", parameter(id).name);
    });
  for (const Id id : ids) states_[id].where = Where::inflight;
  if (scene_.innermost() == "z3.post_step") ++step_gathers_;
  if (fetch_) {
    fetch_->gathers.push_back(ids);
  } else {
    see_gather_outside(event, ids);
  }
}

void Residency::see_gather_end(const HookEvent& event) {
  for (const Id id : ids_of(event)) {
    states_[id].where = Where::whole;
    if (fetch_ && gathers_.was_reclaimed()) reclaimed_.insert(id);
  }
}

// Of a module's own reading (3.8), of an operation (3.10), or of a context of the user's (3.9).
void Residency::see_gather_outside(const HookEvent& event, const Ids& ids) {
  const bool is_engines =
      scene_.is_in_any("z3.") || scene_.is_in_any("coord.") || scene_.is_in(calls::kLoad);
  if (is_engines) return;
  const bool is_in_forward = uses_.depth() > 0;
  const bool is_in_task = !event.graph_task.is_none();
  for (const Id id : ids) {
    const bool is_told = states_[id].is_in_context || uses_.is_used_by_forward(id);
    if (is_told) continue;
    if (is_in_forward && world_.unseen.reads_elsewhere) {
      uses_.add_external(uses_.innermost(), id);
      if (!world_.is_ours()) states_[id].is_returned = true;  // no hook frees it there
    } else if (is_in_task && !is_in_forward && !world_.unseen.gathers_inside) {
      states_[id].is_operations = true;
    } else {
      states_[id].is_users = true;
    }
  }
}

void Residency::see_partition(const HookEvent& event) {
  const bool is_of_modules = scene_.is_in("z3.post_forward") || scene_.is_in("z3.post_backward") ||
                             scene_.is_in("z3.backward_epilogue");
  const bool is_engines = scene_.is_in_any("z3.") || scene_.is_in_any("coord.");
  const bool is_modules_own = scene_.innermost() == calls::kForward && world_.is_ours() &&
                              event.transforms == 0 && event.graph_task.is_none() &&
                              !world_.unseen.gathers_inside;
  for (const Id id : ids_of(event)) {
    State& state = states_[id];
    if (is_of_modules && world_.is_ours() && is_judging(event))
      ledger_.judge(Rule::persistent_kept, !parameter(id).is_persistent, event.lc, [&] {
        return fmt::format("{} is persistent, and the engine frees it in {}", parameter(id).name,
                           scene_.innermost());
      });
    if (is_modules_own && !state.is_users && !state.is_operations) {
      if (has_root_ended_) freed_at_end_.insert(id);
      ledger_.judge(Rule::persistent_kept, !parameter(id).is_persistent, event.lc, [&] {
        return fmt::format("{} is persistent, and a forward frees it", parameter(id).name);
      });
    }
    if (is_of_modules && world_.is_ours() && is_judging(event))
      ledger_.judge(Rule::needed_soon, !state.is_in_context, event.lc, [&] {
        return fmt::format("{} is in a context of the user, and {} frees it", parameter(id).name,
                           scene_.innermost());
      });
    state.where = Where::free;
    state.is_operations = false;
    if (!is_engines) {
      state.is_users = state.is_in_context;
      retained_.lose(id);
    }
    if (release_) release_->freed.insert(id);
  }
}

// Without a backward to come an engine frees what was gathered ahead for one (3.4, Ours).
void Residency::end_forward(const HookEvent& event) {
  const std::set<Id> freed = std::exchange(freed_at_end_, {});
  if (world_.unseen.has_idle_forwards || !world_.is_ours() || !is_judging(event)) return;
  ledger_.judge(Rule::needed_soon, freed.empty(), event.lc, [&] {
    return fmt::format("the end of a forward frees {}, which its backward needs", list(freed));
  });
}

void Residency::see_forward(const HookEvent& event) {
  const auto module = index_.module(event.name);
  if (!module || world_.modules[*module].is_below_leaf) return;
  if (!world_.is_ours() || !scene_.is_in(calls::kForward)) return;
  if (event.kind == EventKind::module_fwd_pre) {
    expected_module_ = *module;
    return;
  }
  if (expected_module_ == *module && is_judging(event))
    ledger_.find(Rule::module_fetched, event.lc,
                 fmt::format("{} runs without a fetch", world_.modules[*module].name));
  expected_module_.reset();
}

// What a recompute has left on the stack as it stopped early, or failed, is under way no more.
void Residency::see_checkpoint(const HookEvent& event) {
  if (event.kind == EventKind::ckpt_recompute_begin) return depths_.push_back(uses_.depth());
  if (depths_.empty()) return;
  uses_.shrink_to(depths_.back());
  depths_.pop_back();
}

void Residency::see_mark(const HookEvent& event) {
  const std::string_view label = text(event.name);
  constexpr std::string_view kExternal = "external_parameter:";
  if (label == "backward_left_modules") end_backwards();
  const auto id = index_.parameter(event.param);
  if (!id) return;
  if (label == "gather_abandoned") {
    states_[*id].where = Where::free;
    failure_ = Freedom::failed_call;
  }
  if (label.starts_with(kExternal)) states_[*id].is_returned = true;
}

void Residency::end_task(const HookEvent& event) {
  has_failed_ = has_failed_ || event.is_exceptional();
  if (event.is_exceptional()) retained_.clear();
  if (scene_.graph_tasks() > 1) return;
  depths_.clear();
  uses_.end_task();
  if (!event.is_exceptional()) return;
  uses_.end_backwards(false);
  uses_.end_task();
  has_failed_ = true;
  failure_ = Freedom::failed_call;
}

std::int64_t Residency::sum(const std::set<Id>& ids) const {
  std::int64_t elements_of_all = 0;
  for (const Id id : ids) elements_of_all += elements(id);
  return elements_of_all;
}

std::string Residency::list(const std::set<Id>& ids) const {
  std::vector<std::string_view> names;
  for (const Id id : ids) names.push_back(parameter(id).name);
  return names.empty() ? "no parameter" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace zeroproof::reference

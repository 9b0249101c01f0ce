#include "props/replay/fsdp2_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "props/replay/moment.h"

namespace zeroproof {
namespace {

constexpr std::string_view kFinalRule =
    "FSDP2: the root's final callback runs once a backward, at the end of the outermost graph task";
constexpr std::string_view kPostRule =
    "FSDP2: every unit that was unsharded for the backward is resharded and reduced by its "
    "post-backward, or by the final callback";

// The recorder's word for a parameter of a model that it does not watch.
bool is_unnamed(std::string_view param) {
  return param.starts_with("unnamed[");
}

}  // namespace

void Fsdp2Rules::on_event(const HookEvent& event, std::string_view line) {
  switch (event.kind) {
    case EventKind::gt_begin:
      if (backward_.begins()) begin_backward(event);
      break;
    case EventKind::gt_end:
      if (backward_.ends()) end_backward(event);
      break;
    case EventKind::engine_call: {
      const std::string_view method = names_.text(event.name);
      if (method.starts_with("fsdp2."))
        on_unit(method.substr(6), std::string(line_text(line, "module")), event);
      break;
    }
    case EventKind::engine_return: {
      const std::string_view method = names_.text(event.name);
      if (method == "fsdp2.post_backward" && open_post_backwards_ > 0) --open_post_backwards_;
      if (method == "fsdp2.final_callback") is_in_final_ = false;
      break;
    }
    case EventKind::mark:
      on_mark(event);
      break;
    case EventKind::zparam_gather_begin:
    case EventKind::zparam_gather_end:
    case EventKind::zparam_partition:
      on_gather_or_partition(event);
      break;
    case EventKind::coll_issue:
      on_collective(event);
      break;
    case EventKind::param_post_acc:
      on_gradient(event);
      break;
    case EventKind::opt_step:
      on_step(event);
      break;
    default:
      break;
  }
}

void Fsdp2Rules::on_unit(std::string_view moment, const std::string& unit, const HookEvent& event) {
  tell(event, fmt::format("{} of {}", moment, unit.empty() ? "the root" : unit));
  if (moment == "pre_backward") {
    if (roots_[event.engine].has_nested_final) find_nested_final(event);
    roots_[event.engine].begun_in.insert(event.graph_task);
    awaited_.insert({event.engine, unit});
  } else if (moment == "post_backward") {
    if (roots_[event.engine].has_nested_final && backward_.depth() > 0) find_nested_final(event);
    if (backward_.depth() == 0) finalized_by_hand_.insert(event.engine);
    ++open_post_backwards_;
    awaited_.erase({event.engine, unit});
  } else if (moment == "final_callback") {
    on_final(unit, event);
  }
}

// The words of recordings that watch from outside.
void Fsdp2Rules::on_mark(const HookEvent& event) {
  const std::string_view label = names_.text(event.name);
  if (label.starts_with("pre_bwd:")) on_unit("pre_backward", std::string(label.substr(8)), event);
  if (label.starts_with("post_bwd:")) {
    on_unit("post_backward", std::string(label.substr(9)), event);
    --open_post_backwards_;  // a moment, no bracket
  }
  if (label == "final+") on_unit("final_callback", "", event);
  if (label == "final-") is_in_final_ = false;
}

void Fsdp2Rules::on_gather_or_partition(const HookEvent& event) {
  const bool is_partition = event.kind == EventKind::zparam_partition;
  for (const NameId param : event.params) {
    if (is_unnamed(names_.text(param))) continue;
    if (is_partition)
      sharded_.insert(param);
    else
      sharded_.erase(param);
  }
}

void Fsdp2Rules::begin_backward(const HookEvent& event) {
  finals_.clear();
  roots_.clear();
  stepped_unsynced_.clear();
  finalized_by_hand_.clear();
  findings_.begin_story(event);
}

void Fsdp2Rules::on_final(const std::string& unit, const HookEvent& event) {
  is_in_final_ = true;
  Root& root = roots_[event.engine];
  root.has_final = true;
  if (backward_.depth() > 1) {
    root.nested_final = event;
    root.has_nested_final = true;
    const bool has_begun_outside =
        std::any_of(root.begun_in.begin(), root.begun_in.end(),
                    [&](GraphTaskId task) { return task != event.graph_task; });
    if (has_begun_outside) find_nested_final(event);
    return;
  }
  if (++finals_[{event.engine, unit}] == 2)
    findings_.find({.kind = "fsdp2.final_callback_twice",
                    .what = fmt::format("the final callback of {} ran twice in one backward",
                                        unit.empty() ? "the root" : unit),
                    .rule = std::string(kFinalRule),
                    .look_at = "a backward that was started inside a hook or inside a callback of "
                               "another one"},
                   event);
}

// A backward that lies in the nested task as a whole ends there by right.
void Fsdp2Rules::find_nested_final(const HookEvent& at) {
  Root& root = roots_[at.engine];
  root.has_nested_final = false;
  findings_.find(
      {.kind = "fsdp2.final_callback_in_nested_task",
       .what =
           fmt::format("the root's final callback ran at the end of nested graph task {}, while "
                       "the backward that owns it still had work",
                       root.nested_final.graph_task.value),
       .rule = std::string(kFinalRule),
       .look_at = "fully_shard(model) on the root itself: with inner units only, the first "
                  "pre-backward inside a reentrant checkpoint takes the callback; or "
                  "use_reentrant=False"},
      root.nested_final);
}

// Tensor and sequence parallelism reduce-scatter too, on groups of their own.
void Fsdp2Rules::on_collective(const HookEvent& event) {
  const std::string_view op = names_.text(event.name);
  tell(event, collective_words(event, names_));
  if (op.find("reduce_scatter") == std::string_view::npos) return;
  if (is_in_unit()) {
    reducing_groups_.insert(event.group);
    return;
  }
  if (backward_.depth() == 0) shared_groups_.insert(event.group);
  const bool is_of_units =
      reducing_groups_.contains(event.group) && !shared_groups_.contains(event.group);
  if (backward_.depth() == 0 || !is_of_units || roots_.empty()) return;
  findings_.find({.kind = "fsdp2.reduction_outside_post_backward",
                  .what = fmt::format("{} was issued outside any post-backward",
                                      collective_words(event, names_)),
                  .rule = "FSDP2: a unit's reduce-scatter follows its post-backward",
                  .look_at = "hooks of your own that call collectives on sharded gradients",
                  .collective = collective_words(event, names_)},
                 event);
}

void Fsdp2Rules::on_gradient(const HookEvent& event) {
  // Hooks of a sharded gradient run inside the post-backward that made it.
  if (is_in_unit() || backward_.depth() == 0 || !sharded_.contains(event.param)) return;
  const std::string param(names_.text(event.param));
  findings_.find(
      {.kind = "fsdp2.use_after_reshard",
       .what = fmt::format("the gradient of {} formed after its unit had been resharded", param),
       .rule = "FSDP2: a unit is unsharded from its pre-backward to its post-backward",
       .look_at = "a second backward over the same forward, or a module used twice: "
                  "reshard_after_forward=False, or set_reshard_after_backward(False)",
       .parameter = param},
      event);
}

void Fsdp2Rules::end_backward(const HookEvent& event) {
  last_end_ = event;
  if (event.is_exceptional()) {
    awaited_.clear();
    return;
  }
  for (const auto& [engine, root] : roots_) {
    if (root.begun_in.empty() || root.has_final) continue;
    findings_.find(
        {.kind = "fsdp2.no_final_callback",
         .what = "the backward ended without the root's final callback: gradients were not "
                 "finalised and the next forward starts from a stale state",
         .rule = std::string(kFinalRule),
         .look_at = "an exception in an earlier backward that left the callback flag set "
                    "(reset by a newer PyTorch), or a backward started inside a forward"},
        event);
    awaited_.clear();  // a consequence
  }
}

// A backward that is finalised by hand reduces the rest of its units after the graph task.
void Fsdp2Rules::on_step(const HookEvent& event) {
  find_not_resharded(event);
  const bool is_reduced =
      !backward_.is_unsynced(event.engine) || finalized_by_hand_.contains(event.engine);
  if (is_reduced || !stepped_unsynced_.insert(event.engine).second) return;
  findings_.find(
      {.kind = "fsdp2.step_without_sync",
       .what = fmt::format("the optimizer stepped although the backward that ended at lc {} ran "
                           "without gradient synchronisation: its gradients are not reduced",
                           last_end_.lc),
       .rule = "FSDP2: the last backward before a step reduces what was accumulated",
       .look_at = "set_requires_gradient_sync(...): it must be on for the last micro-batch"},
      event);
}

void Fsdp2Rules::find_not_resharded(const HookEvent& at) {
  std::vector<std::string> units;
  for (const auto& [engine, unit] : std::exchange(awaited_, {})) units.push_back(unit);
  if (units.empty()) return;
  findings_.find(
      {.kind = "fsdp2.unit_not_resharded",
       .what = fmt::format("no post-backward came for {}: it stays unsharded and its gradient "
                           "unreduced",
                           listed(units)),
       .rule = std::string(kPostRule),
       .look_at = "outputs of the unit that the loss does not use; with manual finalisation, a "
                  "missing finalize_backward()"},
      at);
}

void Fsdp2Rules::finish(bool is_complete, std::vector<Diagnosis>& out) {
  if (is_complete && backward_.depth() == 0) find_not_resharded(last_end_);
  findings_.take(out);
}

void Fsdp2Rules::tell(const HookEvent& event, std::string text) {
  if (backward_.depth() > 0) findings_.tell({event.rank, event.lc, std::move(text)});
}

}  // namespace zeroproof

#include "props/replay/fsdp2_rules.h"

#include <fmt/format.h>

#include "props/replay/moment.h"

namespace zeroproof {
namespace {

constexpr std::string_view kFinalRule =
    "FSDP2: the root's final callback runs once a backward, at the end of the outermost graph task";
constexpr std::string_view kPostRule =
    "FSDP2: every unit that was unsharded for the backward is resharded and reduced by its "
    "post-backward, or by the final callback";

}  // namespace

void Fsdp2Rules::on_event(const HookEvent& event, std::string_view line) {
  switch (event.kind) {
    case EventKind::gt_begin:
      if (depth_++ == 0) begin_backward(event);
      break;
    case EventKind::gt_end:
      if (depth_ > 0 && --depth_ == 0) end_backward(event);
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
      for (const NameId param : event.params) sharded_.erase(param);
      break;
    case EventKind::zparam_partition:
      sharded_.insert(event.params.begin(), event.params.end());
      break;
    case EventKind::coll_issue:
      on_collective(event);
      break;
    case EventKind::param_post_acc:
      on_gradient(event);
      break;
    default:
      break;
  }
}

void Fsdp2Rules::on_unit(std::string_view moment, const std::string& unit, const HookEvent& event) {
  tell(event, fmt::format("{} of {}", moment, unit.empty() ? "the root" : unit));
  if (moment == "pre_backward") {
    has_pre_backward_ = true;
    awaited_.insert(unit);
  } else if (moment == "post_backward") {
    ++open_post_backwards_;
    awaited_.erase(unit);
  } else if (moment == "final_callback") {
    on_final(event);
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

void Fsdp2Rules::begin_backward(const HookEvent& event) {
  root_ = event.graph_task;
  finals_ = 0;
  has_pre_backward_ = false;
  awaited_.clear();
  findings_.begin_story(event);
}

void Fsdp2Rules::on_final(const HookEvent& event) {
  is_in_final_ = true;
  ++finals_;
  if (depth_ > 1)
    findings_.find(
        {.kind = "fsdp2.final_callback_in_nested_task",
         .what =
             fmt::format("the root's final callback ran at the end of nested graph task {}, while "
                         "the backward that owns it still had work",
                         event.graph_task.value),
         .rule = std::string(kFinalRule),
         .look_at = "fully_shard(model) on the root itself: with inner units only, the first "
                    "pre-backward inside a reentrant checkpoint takes the callback; or "
                    "use_reentrant=False"},
        event);
  if (finals_ > 1 && depth_ == 1)
    findings_.find({.kind = "fsdp2.final_callback_twice",
                    .what = "the root's final callback ran twice in one backward",
                    .rule = std::string(kFinalRule),
                    .look_at = "several roots in one loss: shard their common parent"},
                   event);
}

void Fsdp2Rules::on_collective(const HookEvent& event) {
  const std::string_view op = names_.text(event.name);
  tell(event, collective_words(event, names_));
  const bool is_reduction = op.find("reduce_scatter") != std::string_view::npos;
  const bool is_allowed = depth_ == 0 || open_post_backwards_ > 0 || is_in_final_;
  if (!is_reduction || is_allowed || !has_pre_backward_) return;
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
  if (open_post_backwards_ > 0 || is_in_final_ || !sharded_.contains(event.param)) return;
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
  if (event.is_exceptional() || !has_pre_backward_) return;
  if (finals_ == 0)
    findings_.find(
        {.kind = "fsdp2.no_final_callback",
         .what = "the backward ended without the root's final callback: gradients were not "
                 "finalised and the next forward starts from a stale state",
         .rule = std::string(kFinalRule),
         .look_at = "an exception in an earlier backward that left the callback flag set "
                    "(reset by a newer PyTorch), or a backward started inside a forward"},
        event);
  if (finals_ > 0 && !awaited_.empty()) {
    const std::vector<std::string> units(awaited_.begin(), awaited_.end());
    findings_.find(
        {.kind = "fsdp2.unit_not_resharded",
         .what = fmt::format("no post-backward came for {}: it stays unsharded and its gradient "
                             "unreduced",
                             listed(units)),
         .rule = std::string(kPostRule),
         .look_at = "outputs of the unit that the loss does not use"},
        event);
  }
}

void Fsdp2Rules::tell(const HookEvent& event, std::string text) {
  if (depth_ > 0) findings_.tell({event.rank, event.lc, std::move(text)});
}

}  // namespace zeroproof

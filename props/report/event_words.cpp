#include "props/report/event_words.h"

#include <fmt/format.h>

#include <string_view>

#include "props/report/text.h"

namespace zeroproof {
namespace {

struct KindWords {
  EventKind kind;
  std::string_view pattern;  // {} is the name; for parameter kinds the parameter
  bool is_detail;
};

constexpr KindWords kKindWords[] = {
    {EventKind::module_fwd_pre, "module {} forward begins", true},
    {EventKind::module_fwd_post, "module {} forward ends", true},
    {EventKind::module_bwd_pre, "module {} backward begins", true},
    {EventKind::module_bwd_post, "module {} backward ends", true},
    {EventKind::tensor_hook, "tensor hook {}", false},
    {EventKind::param_tensor_hook, "tensor hook of {}", false},
    {EventKind::param_post_acc, "accumulated {}", false},
    {EventKind::multi_hook, "multi-grad hook {}", false},
    {EventKind::node_prehook, "node prehook {}", false},
    {EventKind::node_posthook, "node posthook {}", false},
    {EventKind::node_exec, "node {}", false},
    {EventKind::cb_queue, "callback queued", false},
    {EventKind::cb_begin, "callback runs", false},
    {EventKind::cb_end, "callback ends", true},
    {EventKind::ckpt_forward_begin, "checkpoint {} forward begins", true},
    {EventKind::ckpt_forward_end, "checkpoint {} forward ends", true},
    {EventKind::ckpt_recompute_begin, "recompute of {} begins", false},
    {EventKind::ckpt_recompute_end, "recompute of {} ends", false},
    {EventKind::fn_forward_begin, "Function {} forward begins", true},
    {EventKind::fn_forward_end, "Function {} forward ends", true},
    {EventKind::fn_backward_begin, "Function {} backward begins", false},
    {EventKind::fn_backward_end, "Function {} backward ends", true},
    {EventKind::ft_push, "transform {} enters", false},
    {EventKind::ft_pop, "transform {} leaves", false},
    {EventKind::autocast_enter, "autocast {} enters", true},
    {EventKind::autocast_exit, "autocast {} leaves", true},
    {EventKind::zparam_gather_begin, "gather begins", true},
    {EventKind::zparam_gather_end, "gather ends", true},
    {EventKind::zparam_partition, "parameters partitioned", true},
    {EventKind::zparam_status, "{} changes status", true},
    {EventKind::zmod_fetch, "module {} fetched", true},
    {EventKind::zmod_release, "module {} released", true},
    {EventKind::bucket_add, "{} into the bucket", true},
    {EventKind::bucket_flush, "bucket flushed", false},
    {EventKind::bucket_ready, "bucket ready", false},
    {EventKind::coll_issue, "{} issued", false},
    {EventKind::coll_complete, "{} complete", false},
    {EventKind::bhs_call, "manager {}", true},
    {EventKind::bhs_return, "manager {} returns", true},
    {EventKind::opt_step, "optimizer step", false},
    {EventKind::opt_zero_grad, "optimizer zero_grad", false},
    {EventKind::opt_state, "optimizer state", true},
    {EventKind::exc, "exception {}", false},
    {EventKind::mark, "mark {}", true},
};

struct MethodWords {
  std::string_view method;
  std::string_view words;
  bool has_end;  // the return has a line of its own
};

constexpr MethodWords kMethodWords[] = {
    {"engine.forward", "engine.forward", true},
    {"engine.backward", "engine.backward", true},
    {"engine.backward_prologue", "prologue", false},
    {"engine.backward_epilogue", "epilogue", false},
    {"engine.scale", "scale", false},
    {"engine.step", "step", false},
    {"engine.zero_grad", "zero_grad", false},
    {"grad_hook", "hook", false},
};

const MethodWords* method_words(std::string_view method) {
  for (const MethodWords& words : kMethodWords) {
    if (words.method == method) return &words;
  }
  return nullptr;
}

std::string_view epilogue_manner(const HookEvent& event) {
  return event.graph_task.is_none() ? " (explicit)" : " (automatic)";
}

// What the call is, without whether it begins or ends: "hook p4", "epilogue (automatic)".
std::string call_subject(const HookEvent& event, const NameTable& names) {
  const std::string_view method = names.text(event.name);
  const MethodWords* words = method_words(method);
  std::string subject(words ? words->words : method);
  if (!event.param.is_none()) subject += fmt::format(" {}", names.text(event.param));
  if (subject == "epilogue") subject += epilogue_manner(event);
  if (event.engine.value > 0) subject += fmt::format(" of engine {}", event.engine.value);
  return subject;
}

EventWords engine_words(const HookEvent& event, const NameTable& names) {
  const MethodWords* words = method_words(names.text(event.name));
  const bool has_end = words && words->has_end;
  const std::string subject = call_subject(event, names);
  if (event.kind == EventKind::engine_call) {
    return {subject + (has_end ? " begins" : ""), words == nullptr};
  }
  return {subject + " ends", !has_end};
}

EventWords graph_task_words(const HookEvent& event) {
  const bool is_begin = event.kind == EventKind::gt_begin;
  const std::string task =
      event.graph_task.is_none() ? "" : fmt::format(" {}", event.graph_task.value);
  const std::string_view nested = is_begin && event.parent_call >= 0 ? ", nested" : "";
  return {fmt::format("graph task{} {}{}", task, is_begin ? "begins" : "ends", nested), false};
}

EventWords kind_words(const HookEvent& event, const NameTable& names) {
  for (const KindWords& words : kKindWords) {
    if (words.kind != event.kind) continue;
    const std::string_view name = names.text(event.name.is_none() ? event.param : event.name);
    return {fmt::format(fmt::runtime(words.pattern), name), words.is_detail};
  }
  return {"event of an unknown kind", true};
}

// What some kinds add: the number of a collective, the size of a bucket, a message.
std::string supplement(const HookEvent& event, const NameTable& names) {
  switch (event.kind) {
    case EventKind::coll_issue:
    case EventKind::coll_complete:
      return event.index < 0 ? "" : fmt::format(" (number {})", event.index);
    case EventKind::bucket_flush:
      return event.params.empty() ? "" : fmt::format(" ({} parameters)", event.params.size());
    case EventKind::exc:
      return event.message.is_none() ? "" : fmt::format(": {}", names.text(event.message));
    case EventKind::ckpt_recompute_end:
      return event.is_early_stop ? " (early stop)" : "";
    case EventKind::module_fwd_pre:
    case EventKind::module_fwd_post:
      return event.is_recompute ? " (recompute)" : "";
    default:
      return "";
  }
}

EventWords plain_words(const HookEvent& event, const NameTable& names) {
  switch (event.kind) {
    case EventKind::engine_call:
    case EventKind::engine_return:
      return engine_words(event, names);
    case EventKind::gt_begin:
    case EventKind::gt_end:
      return graph_task_words(event);
    default:
      return kind_words(event, names);
  }
}

}  // namespace

EventWords event_words(const HookEvent& event, const NameTable& names) {
  EventWords words = plain_words(event, names);
  words.text += supplement(event, names);
  if (event.is_exceptional()) {
    words.text += fmt::format(" by {}", names.text(event.exception));
    words.is_detail = false;
  }
  words.text = visible(words.text);
  return words;
}

}  // namespace zeroproof

#include "sim/trace/slices.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace zeroproof {
namespace {

struct Bracket {
  EventKind begin;
  EventKind end;
  std::string_view title;  // put before the name
};

constexpr std::array<Bracket, 11> kBrackets = {{
    {EventKind::gt_begin, EventKind::gt_end, "graph_task "},
    {EventKind::cb_begin, EventKind::cb_end, "callback "},
    {EventKind::ckpt_forward_begin, EventKind::ckpt_forward_end, "ckpt fwd "},
    {EventKind::ckpt_recompute_begin, EventKind::ckpt_recompute_end, "RECOMPUTE "},
    {EventKind::fn_forward_begin, EventKind::fn_forward_end, "Function.forward "},
    {EventKind::fn_backward_begin, EventKind::fn_backward_end, "Function.backward "},
    {EventKind::ft_push, EventKind::ft_pop, "functorch "},
    {EventKind::autocast_enter, EventKind::autocast_exit, "autocast "},
    {EventKind::engine_call, EventKind::engine_return, ""},
    {EventKind::bhs_call, EventKind::bhs_return, "bhs."},
    {EventKind::module_fwd_pre, EventKind::module_fwd_post, "fwd "},
}};

}  // namespace

SliceKind slice_kind(EventKind kind) {
  for (const Bracket& bracket : kBrackets) {
    if (kind == bracket.begin || kind == bracket.end) {
      return {bracket.begin, kind == bracket.begin, kind == bracket.end};
    }
  }
  return {};
}

SliceKey slice_key(const HookEvent& event) {
  const EventKind begin = slice_kind(event.kind).begin;
  if (begin == EventKind::gt_begin) return {begin, event.call, NameId::none()};
  if (begin == EventKind::ft_push) return {begin, event.index, NameId::none()};
  return {begin, -1, event.name};
}

std::string slice_name(const HookEvent& begin, const NameTable& names) {
  const std::string_view name = names.text(begin.name);
  if (begin.kind == EventKind::gt_begin) {
    return fmt::format("graph_task {} (call {})", begin.graph_task.value, begin.call);
  }
  if (begin.kind == EventKind::ft_push) return fmt::format("functorch {} L{}", name, begin.index);
  if (begin.kind == EventKind::autocast_enter) {
    return fmt::format("autocast {} {}", name, begin.is_enabled ? "True" : "False");
  }
  for (const Bracket& bracket : kBrackets) {
    if (begin.kind == bracket.begin) return fmt::format("{}{}", bracket.title, name);
  }
  return std::string(name);
}

}  // namespace zeroproof

#include "props/conform/deepspeed_sink.h"

#include <algorithm>
#include <string_view>

namespace zeroproof {
namespace {

constexpr std::string_view kRootModule = "model";
constexpr std::string_view kCountMark = "count_used_parameters:";

bool names_a_module(EventKind kind) {
  return kind == EventKind::zmod_fetch || kind == EventKind::zmod_release;
}

bool is_collective(EventKind kind) {
  return kind == EventKind::coll_issue || kind == EventKind::coll_complete;
}

// What our engine says besides (docs/reference/trace_format.md section 14): of its own marks and
// brackets of Functions the recorder of DeepSpeed has the counts alone.
bool is_besides(const HookEvent& event, const NameTable& names) {
  if (event.engine.is_none()) return false;
  switch (event.kind) {
    case EventKind::mark:
      return !names.text(event.name).starts_with(kCountMark);
    case EventKind::fn_forward_begin:
    case EventKind::fn_forward_end:
    case EventKind::fn_backward_begin:
    case EventKind::fn_backward_end:
      return true;
    default:
      return false;
  }
}

}  // namespace

void DeepspeedSink::on_event(const HookEvent& event) {
  if (is_besides(event, names_)) return;
  HookEvent seen = event;
  rename(seen);
  if (is_collective(event.kind) && !is_paused_) renumber(seen);
  if (!is_paused_) take_event(seen, names_, recording_);
}

void DeepspeedSink::rename(HookEvent& event) const {
  const auto engine = static_cast<std::size_t>(event.engine.value);
  if (event.engine.is_none() || engine >= engines_.size() || engines_[engine].empty()) return;
  const std::string& name = engines_[engine];
  const auto prefix = [&](NameId& id) {
    if (!id.is_none()) id = names_.intern(name + "." + std::string(names_.text(id)));
  };
  prefix(event.param);
  for (NameId& param : event.params) prefix(param);
  if (!names_a_module(event.kind)) return;
  if (names_.text(event.name) == kRootModule) {
    event.name = names_.intern(name);
  } else {
    prefix(event.name);
  }
}

void DeepspeedSink::renumber(HookEvent& event) {
  const auto is_it = [&](const Issued& one) {
    return one.engine == event.engine && one.group == event.group && one.own == event.index;
  };
  if (event.kind == EventKind::coll_issue) {
    const std::int64_t number = group(event.group).next++;
    issued_.push_back({event.engine, event.group, event.index, number});
    event.index = number;
    return;
  }
  const auto at = std::ranges::find_if(issued_, is_it);
  if (at == issued_.end()) return;
  event.index = at->number;
  issued_.erase(at);
}

DeepspeedSink::Group& DeepspeedSink::group(NameId name) {
  const auto at = std::ranges::find(groups_, name, &Group::name);
  return at == groups_.end() ? groups_.emplace_back(Group{.name = name}) : *at;
}

}  // namespace zeroproof

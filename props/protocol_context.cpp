// What surrounds an event: its engine, graph task and brackets.
#include <algorithm>

#include "props/protocol_view.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

std::string_view prefix_of(std::string_view param) {
  return param.substr(0, param.find('.'));
}

}  // namespace

void ProtocolView::declare_param(std::string_view name) {
  const std::string_view prefix = prefix_of(name);
  if (std::find(prefixes_.begin(), prefixes_.end(), prefix) == prefixes_.end())
    prefixes_.emplace_back(prefix);
}

EngineId ProtocolView::engine_of(const HookEvent& event) const {
  if (!event.engine.is_none()) return event.engine;
  if (engines_.size() == 1) return engines_.begin()->first;
  if (!event.param.is_none()) return engine_of_param(event.param);
  const auto open = stacks_.find(event.thread);
  if (open != stacks_.end())
    for (auto bracket = open->second.rbegin(); bracket != open->second.rend(); ++bracket)
      if (!bracket->engine.is_none()) return bracket->engine;
  return event.params.empty() ? EngineId::none() : engine_of_param(event.params.front());
}

EngineId ProtocolView::engine_of_param(NameId param) const {
  const std::string_view prefix = prefix_of(names_->text(param));
  const auto found = std::find(prefixes_.begin(), prefixes_.end(), prefix);
  const auto index = static_cast<std::size_t>(found - prefixes_.begin());
  if (index >= engines_.size()) return EngineId::none();
  return std::next(engines_.begin(), static_cast<std::ptrdiff_t>(index))->first;
}

const ProtocolView::Bracket* ProtocolView::enclosing(const HookEvent& event, Method method) const {
  const auto open = stacks_.find(event.thread);
  if (open == stacks_.end()) return nullptr;
  for (auto bracket = open->second.rbegin(); bracket != open->second.rend(); ++bracket)
    if (bracket->method == method && bracket->kind == EventKind::engine_call) return &*bracket;
  return nullptr;
}

std::int64_t ProtocolView::current_task(const HookEvent& event) const {
  const TaskTree::Task* task = tasks_.find(event.graph_task);
  return task == nullptr ? -1 : task->serial;
}

std::int64_t ProtocolView::micro_step_of(const HookEvent& event) const {
  if (event.micro_step >= 0) return event.micro_step;
  const auto open = stacks_.find(event.thread);
  if (open == stacks_.end()) return -1;
  for (auto bracket = open->second.rbegin(); bracket != open->second.rend(); ++bracket)
    if (bracket->micro_step >= 0) return bracket->micro_step;
  return -1;
}

void ProtocolView::append_state(std::string& bytes) const {
  append_bytes(bytes, static_cast<std::int64_t>(engines_.size()));
  for (const auto& [id, engine] : engines_) {
    append_bytes(bytes, (std::int64_t{id.value} << 32) | engine.forwards);
    append_bytes(bytes, (std::int64_t{engine.open_forwards} << 32) | engine.open_backwards);
    append_bytes(bytes, engine.manager.has_value());
    if (engine.manager) append_bytes(bytes, *engine.manager);
    append_bytes(bytes, static_cast<std::int64_t>(engine.pending.size()));
    for (const BackwardTally& tally : engine.pending) append_bytes(bytes, tally);
  }
  for (const auto& [thread, open] : stacks_) {
    append_bytes(bytes, (std::int64_t{thread} << 32) | static_cast<std::int64_t>(open.size()));
    for (const Bracket& bracket : open) {
      append_bytes(bytes, bracket.name.value);
      append_bytes(bytes, bracket.engine.value);
      append_bytes(bytes, bracket.task);
      append_bytes(bytes, bracket.micro_step);
      append_bytes(bytes, bracket.has_seen_error);
      append_bytes(bytes, bracket.has_asked_manager);
      append_bytes(bytes, bracket.has_told_manager);
    }
  }
  for (const NameId param : bypassing_) append_bytes(bytes, param.value);
  tasks_.append_state(bytes);
  parameters_.append_state(bytes);
}

}  // namespace zeroproof

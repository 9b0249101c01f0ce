#include "props/replay/engine_finder.h"

#include <algorithm>

namespace zeroproof {

void EngineFinder::declare_param(std::string_view name) {
  const std::string prefix(name.substr(0, name.find('.')));
  if (std::find(prefixes_.begin(), prefixes_.end(), prefix) == prefixes_.end()) {
    prefixes_.push_back(prefix);
  }
}

EngineId EngineFinder::find(const HookEvent& event) {
  EngineId engine = event.engine;
  if (engine.is_none() && !event.param.is_none()) engine = engine_of_param(event.param);
  if (engine.is_none() && event.kind == EventKind::cb_begin) {
    if (const auto queued = callbacks_.extract({event.graph_task, event.name})) {
      engine = queued.mapped();
    }
  }
  if (engine.is_none()) engine = enclosing(event);
  std::vector<EngineId>& open = brackets_[event.thread];
  switch (event.kind) {
    case EventKind::engine_call:
      if (!event.engine.is_none()) engines_.insert(event.engine);
      [[fallthrough]];
    case EventKind::cb_begin:
      open.push_back(engine);
      break;
    case EventKind::engine_return:
    case EventKind::cb_end:
      if (!open.empty()) {
        engine = open.back();
        open.pop_back();
      }
      break;
    case EventKind::cb_queue:
      callbacks_[{event.graph_task, event.name}] = engine;
      break;
    case EventKind::gt_end:
      if (event.is_exceptional()) {  // its callbacks never run
        std::erase_if(callbacks_,
                      [&](const auto& entry) { return entry.first.first == event.graph_task; });
      }
      break;
    default:
      break;
  }
  return engine;
}

// Engines number their parameters' prefixes in order of declaration; one engine owns all.
EngineId EngineFinder::engine_of_param(NameId param) const {
  if (engines_.size() < 2) return engines_.empty() ? EngineId{0} : *engines_.begin();
  const std::string_view name = names_->text(param);
  const auto at = std::find(prefixes_.begin(), prefixes_.end(), name.substr(0, name.find('.')));
  return EngineId{static_cast<std::int32_t>(at - prefixes_.begin())};
}

EngineId EngineFinder::enclosing(const HookEvent& event) const {
  const auto open = brackets_.find(event.thread);
  if (open == brackets_.end() || open->second.empty()) return EngineId{0};
  return open->second.back();
}

}  // namespace zeroproof

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// Finds the engine of a recorded event: the engine of the enclosing engine.call, or of
// the parameter it names, or, inside a final callback, the engine that queued it.
class EngineFinder {
 public:
  explicit EngineFinder(const NameTable& names) : names_(&names) {}

  void declare_param(std::string_view name);

  // The engine of `event`; engine 0 when it is unknown. Call once for every event, in order.
  EngineId find(const HookEvent& event);

 private:
  EngineId engine_of_param(NameId param) const;
  EngineId enclosing(const HookEvent& event) const;

  const NameTable* names_;
  std::vector<std::string> prefixes_;  // first components of parameter names, as declared
  std::set<EngineId> engines_;
  std::map<std::int32_t, std::vector<EngineId>> brackets_;        // by thread
  std::map<std::pair<GraphTaskId, NameId>, EngineId> callbacks_;  // by task and label
};

}  // namespace zeroproof

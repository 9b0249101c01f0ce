#pragma once

#include <compare>
#include <cstdint>

namespace zeroproof {

// An integer that only compares with its own kind, so that two ids never change places.
template <class Tag, class Rep = std::int32_t, Rep kNone = -1>
struct StrongId {
  Rep value = kNone;

  static constexpr StrongId none() { return {}; }
  constexpr bool is_none() const { return value == kNone; }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
};

using EngineId = StrongId<struct EngineTag>;    // one engine of a process, 0, 1, ...
using ParamId = StrongId<struct ParamTag>;      // one parameter of an engine
using ForwardId = StrongId<struct ForwardTag>;  // one call of engine.forward
using NameId =
    StrongId<struct NameTag>;  // an interned string, see zeroproof/internal/model/names.h
using NodeId = StrongId<struct NodeTag, std::int64_t>;
// Process-global number of a graph task (rule G1); none outside any task.
using GraphTaskId = StrongId<struct GraphTaskTag, std::int64_t>;

}  // namespace zeroproof

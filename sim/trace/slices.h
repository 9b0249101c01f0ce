#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// Brackets that nest per thread (docs/reference/trace_format.md section 5).
struct SliceKind {
  EventKind begin = EventKind::unknown;  // the opening kind of the bracket
  bool is_begin = false;
  bool is_end = false;
};

// Neither begin nor end for a kind that is no bracket.
SliceKind slice_kind(EventKind kind);

// What an end must share with its begin.
struct SliceKey {
  EventKind begin = EventKind::unknown;
  std::int64_t number = -1;  // call, level
  NameId name;               // label, module, method, device
  friend auto operator<=>(const SliceKey&, const SliceKey&) = default;
};

SliceKey slice_key(const HookEvent& event);

// For people: "graph_task 3 (call 0)", "RECOMPUTE block1".
std::string slice_name(const HookEvent& begin, const NameTable& names);

}  // namespace zeroproof

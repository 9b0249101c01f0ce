#pragma once

#include <cstdint>
#include <string_view>

#include "zeroproof/model/event_kind.h"

namespace zeroproof {

// The fields of an event line that have a meaning (docs/reference/trace_format.md sections 4 and
// 5).
enum class EventField : std::uint8_t {
  none,  // not one of these; also the kinds whose `name` is empty
  rec,
  lc,
  t,
  r,
  th,
  k,
  gt,
  d,
  ft,
  method,
  label,
  module,
  op,
  status,
  kind,
  device,
  dtype,
  type,
  name,
  param,
  group,
  exc,
  message,
  params,
  engine,
  call,
  parent,
  micro,
  gstep,
  node,
  index,
  cseq,
  level,
  n,
  numel,
  live_numel,
  bytes,
  forward,
  async_op,  // written "async"
  recompute,
  early_stop,
  none_grad,  // written "none"
  grad_none,
  persist,
  enabled,
  active,
  micro_step_id,
  state,
  args,
  ret,
  peer,
  root,
  optimizer,
  grads,
  closure,
  uncaught,
  api,
  keep_graph,
};

EventField event_field_of(std::string_view key);
std::string_view event_field_name(EventField field);

constexpr std::uint64_t bit(EventField field) {
  return std::uint64_t{1} << static_cast<unsigned>(field);
}

template <class... Fields>
constexpr std::uint64_t bits(Fields... fields) {
  return (std::uint64_t{0} | ... | bit(fields));
}

// How the fields of one kind map to HookEvent.
struct EventShape {
  EventKind kind = EventKind::unknown;
  EventField name = EventField::none;   // becomes HookEvent::name
  EventField index = EventField::none;  // becomes HookEvent::index
  std::uint64_t required = 0;           // beyond kCommonFields
  std::uint64_t optional = 0;

  // Fields whose type is fixed; any other may hold what a later version puts there.
  constexpr std::uint64_t typed() const;
};

inline constexpr std::uint64_t kCommonFields =
    bits(EventField::rec, EventField::lc, EventField::t, EventField::r, EventField::th,
         EventField::k, EventField::gt, EventField::d);

constexpr std::uint64_t EventShape::typed() const {
  return required | optional | kCommonFields | bits(EventField::ft, EventField::engine);
}

const EventShape& event_shape(EventKind kind);

// event_kind_of, fast enough for a reader's inner loop.
EventKind find_event_kind(std::string_view word);

}  // namespace zeroproof

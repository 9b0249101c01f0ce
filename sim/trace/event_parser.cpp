#include "sim/trace/event_parser.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <limits>

#include "sim/trace/event_fields.h"
#include "sim/trace/manager_state.h"

namespace zeroproof {
namespace {

using F = EventField;

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::min();

constexpr std::uint64_t kWords =
    bits(F::rec, F::k, F::method, F::label, F::module, F::op, F::status, F::kind, F::device,
         F::dtype, F::type, F::name, F::param, F::group, F::message, F::api);

std::string_view expected_of(F field) {
  switch (field) {
    case F::lc:
      return "an integer of 1 or more";
    case F::r:
    case F::th:
    case F::d:
      return "an integer from 0 to 2^31-1";
    case F::gt:
      return "an integer of -1 or more";
    case F::forward:
    case F::async_op:
    case F::recompute:
    case F::early_stop:
    case F::none_grad:
    case F::grad_none:
    case F::persist:
    case F::enabled:
    case F::closure:
    case F::uncaught:
    case F::keep_graph:
      return "true or false";
    case F::params:
      return "an array of strings";
    case F::ft:
    case F::args:
      return "an array";
    case F::state:
      return "an object or array";
    case F::exc:
      return "a string or true";
    default:
      return (kWords & bit(field)) != 0 ? "a string" : "an integer in range";
  }
}

// One pass over the line. What a field means is known only once `k` was seen, which may come
// last, so a field of the wrong type is judged at the end.
class EventLine {
 public:
  EventLine(std::span<const JsonLineValue> values, NameTable& names, HookEvent& event)
      : values_(values), names_(names), event_(event) {}

  ParseResult read() {
    for (std::size_t i = 1; i < values_.size(); i = values_[i].end) {
      const F field = event_field_of(values_[i].key);
      if (field == F::none || values_[i].kind == JsonLineKind::null) continue;
      at_[static_cast<std::size_t>(field)] = static_cast<std::uint32_t>(i);
      seen_ |= bit(field);
      if (!take(field, i)) wrong_ |= bit(field);
    }
    const EventShape& shape = event_shape(event_.kind);
    if (auto complete = check(shape); !complete) return complete;
    return finish(shape);
  }

 private:
  bool take(F field, std::size_t index);
  bool take_number(F field, const JsonLineValue& value);
  bool take_flag(F field, const JsonLineValue& value);
  bool take_params(std::size_t index);
  bool take_argument(std::size_t index);
  bool take_exception(const JsonLineValue& value);
  ParseResult check(const EventShape& shape) const;
  ParseResult finish(const EventShape& shape);

  static bool set(std::int64_t& out, const JsonLineValue& value, std::int64_t low) {
    out = value.integer;
    return value.integer >= low;
  }
  static bool set(std::uint64_t& out, const JsonLineValue& value, std::int64_t low) {
    out = static_cast<std::uint64_t>(value.integer);
    return value.integer >= low;
  }
  static bool set(std::int32_t& out, const JsonLineValue& value, std::int64_t low) {
    out = static_cast<std::int32_t>(value.integer);
    return value.integer >= low && value.integer == out;
  }

  bool has(F field) const { return (seen_ & bit(field)) != 0; }
  std::size_t index_of(F field) const { return at_[static_cast<std::size_t>(field)]; }
  const JsonLineValue& value_of(F field) const { return values_[index_of(field)]; }
  NameId name_of(F field) const {
    return has(field) ? names_.intern(value_of(field).text) : NameId::none();
  }

  std::span<const JsonLineValue> values_;
  NameTable& names_;
  HookEvent& event_;
  std::array<std::uint32_t, 64> at_;  // where a field is, set for the fields in seen_
  std::uint64_t seen_ = 0;
  std::uint64_t wrong_ = 0;  // seen, with a type or value the field does not have
};

bool EventLine::take(F field, std::size_t index) {
  const JsonLineValue& value = values_[index];
  switch (value.kind) {
    case JsonLineKind::integer:
      return take_number(field, value);
    case JsonLineKind::boolean:
      return take_flag(field, value);
    case JsonLineKind::string:
      if (field == F::k) event_.kind = find_event_kind(value.text);
      if (field == F::exc) return take_exception(value);
      return ((kWords | bit(F::ret)) & bit(field)) != 0;
    case JsonLineKind::array:
      if (field == F::params) return take_params(index);
      if (field == F::args) return take_argument(index);
      if (field == F::ft) {
        event_.transforms = 0;
        for (std::size_t i = index + 1; i < value.end; i = values_[i].end) ++event_.transforms;
      }
      return field == F::ft || field == F::state || field == F::ret;
    case JsonLineKind::object:
      return field == F::state || field == F::ret;
    default:
      return field == F::ret;
  }
}

bool EventLine::take_number(F field, const JsonLineValue& value) {
  switch (field) {
    case F::lc:
      return set(event_.lc, value, 1);
    case F::t:
      return set(event_.time_ns, value, kAny);
    case F::r:
      return set(event_.rank, value, 0);
    case F::th:
      return set(event_.thread, value, 0);
    case F::gt:
      return set(event_.graph_task.value, value, -1);
    case F::d:
      return set(event_.depth, value, 0);
    case F::engine:
      return set(event_.engine.value, value, 0);
    case F::call:
      return set(event_.call, value, kAny);
    case F::parent:
      return set(event_.parent_call, value, kAny);
    case F::micro:
      return set(event_.micro_step, value, kAny);
    case F::gstep:
      return set(event_.global_step, value, kAny);
    case F::node:
      return set(event_.node, value, kAny);
    case F::peer:
      return set(event_.peer, value, -1);
    case F::root:
      return set(event_.root, value, 0);
    case F::optimizer:
      return set(event_.optimizer, value, 0);
    case F::grads:
      return set(event_.grads, value, 0);
    case F::bytes:
      return set(event_.bytes, value, 0);
    case F::active:
      return set(event_.active_modules, value, kAny);
    case F::numel:
    case F::live_numel:
      return set(event_.numel, value, 0);
    case F::micro_step_id:
      event_.index = value.integer;
      return true;
    case F::index:
    case F::cseq:
    case F::level:
    case F::n:
    case F::ret:
      return true;  // taken by `finish`, or not at all
    default:
      return false;
  }
}

bool EventLine::take_flag(F field, const JsonLineValue& value) {
  switch (field) {
    case F::forward:
      event_.is_forward = value.boolean;
      return true;
    case F::async_op:
      event_.is_async = value.boolean;
      return true;
    case F::recompute:
      event_.is_recompute = value.boolean;
      return true;
    case F::early_stop:
      event_.is_early_stop = value.boolean;
      return true;
    case F::none_grad:
    case F::grad_none:
      event_.is_grad_none = event_.is_grad_none || value.boolean;
      return true;
    case F::persist:
      event_.is_persistent = value.boolean;
      return true;
    case F::enabled:
      event_.is_enabled = value.boolean;
      return true;
    case F::closure:
      event_.is_closure = value.boolean;
      return true;
    case F::uncaught:
      event_.is_uncaught = value.boolean;
      return true;
    case F::keep_graph:
      event_.keeps_graph = value.boolean;
      return true;
    case F::ret:
      event_.returned = value.boolean;
      return true;
    case F::exc:
      return take_exception(value);
    default:
      return false;
  }
}

bool EventLine::take_params(std::size_t index) {
  for (std::size_t i = index + 1; i < values_[index].end; i = values_[i].end) {
    if (values_[i].kind != JsonLineKind::string) return false;
    event_.params.push_back(names_.intern(values_[i].text));
  }
  return true;
}

bool EventLine::take_argument(std::size_t index) {
  const bool has_first = values_[index].end > index + 1;
  if (has_first && values_[index + 1].kind == JsonLineKind::integer) {
    event_.argument = values_[index + 1].integer;
  }
  return true;
}

// An exception of unknown type is written `true`.
bool EventLine::take_exception(const JsonLineValue& value) {
  if (value.kind == JsonLineKind::string && !value.text.empty()) {
    event_.exception = names_.intern(value.text);
  } else if (value.boolean) {
    event_.exception = names_.intern(kUnnamedException);
  }
  return true;
}

ParseResult EventLine::check(const EventShape& shape) const {
  const std::uint64_t wrong = wrong_ & shape.typed();
  const std::uint64_t missing = (shape.required | kCommonFields) & ~seen_;
  if (wrong == 0 && missing == 0) return {};
  const std::string_view kind = has(F::k) ? value_of(F::k).text : std::string_view("event");
  if (wrong != 0) {
    const auto field = static_cast<F>(std::countr_zero(wrong));
    return tl::unexpected(fmt::format("{}: \"{}\" is {}, expected {}; correct the producer",
                                      printable(kind), event_field_name(field),
                                      describe(value_of(field)), expected_of(field)));
  }
  const auto field = static_cast<F>(std::countr_zero(missing));
  return tl::unexpected(fmt::format("{} lacks \"{}\"; correct the producer", printable(kind),
                                    event_field_name(field)));
}

ParseResult EventLine::finish(const EventShape& shape) {
  if ((wrong_ & bit(shape.name)) == 0) event_.name = name_of(shape.name);
  event_.param = (wrong_ & bit(F::param)) == 0 ? name_of(F::param) : NameId::none();
  event_.group = (wrong_ & bit(F::group)) == 0 ? name_of(F::group) : NameId::none();
  event_.message = (wrong_ & bit(F::message)) == 0 ? name_of(F::message) : NameId::none();
  if (shape.index != F::none && has(shape.index)) event_.index = value_of(shape.index).integer;
  const bool is_manager =
      event_.kind == EventKind::bhs_call || event_.kind == EventKind::bhs_return;
  if (!is_manager || !has(F::state)) return {};
  return parse_manager_state(values_, index_of(F::state), event_.manager);
}

}  // namespace

ParseResult EventParser::parse(std::span<const JsonLineValue> line, HookEvent& event) {
  std::vector<NameId> params = std::move(event.params);
  params.clear();
  event = {};
  event.params = std::move(params);
  return EventLine(line, names_, event).read();
}

}  // namespace zeroproof

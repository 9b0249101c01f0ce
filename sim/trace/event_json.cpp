#include <bit>

#include "model/check.h"
#include "sim/trace/event_fields.h"
#include "sim/trace/event_parser.h"
#include "sim/trace/json_object.h"
#include "sim/trace/manager_state.h"
#include "sim/trace/record_json.h"

namespace zeroproof {
namespace {

using F = EventField;

// Writes the members an event has, and keeps count of them for the check at the end.
class EventLineWriter {
 public:
  EventLineWriter(const HookEvent& event, const NameTable& names, std::string& out)
      : event_(event), names_(names), object_(out), shape_(event_shape(event.kind)) {}

  void write() {
    write_common();
    write_names();
    write_numbers();
    write_flags();
    write_manager();
    object_.close();
    const std::uint64_t missing = (shape_.required | kCommonFields) & ~written_;
    ZP_CHECK(missing == 0,
             std::string(event_kind_name(event_.kind)) + " event without " +
                 std::string(event_field_name(static_cast<F>(std::countr_zero(missing)))));
  }

 private:
  void write_common();
  void write_names();
  void write_numbers();
  void write_flags();
  void write_manager();

  std::string& key(F field) {
    written_ |= bit(field);
    return object_.key(event_field_name(field));
  }
  template <class T>
  void put(F field, const T& value) {
    append_json(value, key(field));
  }
  void put_name(F field, NameId id) {
    if (!id.is_none()) put(field, names_.text(id));
  }
  void put_count(F field, std::int64_t value) {
    if (value != -1) put(field, value);
  }
  void put_flag(F field, bool value) {
    if (value) put(field, value);
  }
  bool has(F field) const { return (shape_.typed() & bit(field)) != 0; }

  const HookEvent& event_;
  const NameTable& names_;
  JsonObject object_;
  const EventShape& shape_;
  std::uint64_t written_ = 0;
};

void EventLineWriter::write_common() {
  put(F::rec, std::string_view("ev"));
  put(F::lc, event_.lc);
  put(F::t, event_.time_ns);
  put(F::r, event_.rank);
  put(F::th, event_.thread);
  put(F::k, event_kind_name(event_.kind));
  put(F::gt, event_.graph_task.value);
  put(F::d, event_.depth);
  if (event_.transforms == 0) return;
  std::string& stack = key(F::ft);
  for (int level = 1; level <= event_.transforms; ++level) {
    stack += level == 1 ? "[[" : ",[";
    append_json(level, stack);
    stack += ",\"?\"]";
  }
  stack += ']';
}

void EventLineWriter::write_names() {
  if (shape_.name != F::none) put_name(shape_.name, event_.name);
  put_name(F::param, event_.param);
  put_name(F::group, event_.group);
  put_name(F::message, event_.message);
  if (!event_.params.empty() || (shape_.required & bit(F::params)) != 0) {
    std::string& list = key(F::params);
    list += '[';
    for (const NameId param : event_.params) {
      if (list.back() != '[') list += ',';
      append_json(names_.text(param), list);
    }
    list += ']';
  }
  if (!event_.is_exceptional()) return;
  if (names_.text(event_.exception) == kUnnamedException) {
    put(F::exc, true);
  } else {
    put_name(F::exc, event_.exception);
  }
}

void EventLineWriter::write_numbers() {
  put_count(F::engine, event_.engine.value);
  put_count(F::call, event_.call);
  put_count(F::parent, event_.parent_call);
  put_count(F::micro, event_.micro_step);
  put_count(F::gstep, event_.global_step);
  put_count(F::node, event_.node);
  if (shape_.index != F::none) put_count(shape_.index, event_.index);
  put_count(has(F::live_numel) ? F::live_numel : F::numel, event_.numel);
  put_count(F::bytes, event_.bytes);
  put_count(F::peer, event_.peer);
  put_count(F::root, event_.root);
  put_count(F::optimizer, event_.optimizer);
  put_count(F::grads, event_.grads);
  if (event_.active_modules != 0 || has(F::active)) put(F::active, event_.active_modules);
}

void EventLineWriter::write_flags() {
  if (event_.is_forward || has(F::forward)) put(F::forward, event_.is_forward);
  if (event_.is_async || event_.kind == EventKind::coll_issue) put(F::async_op, event_.is_async);
  if (event_.is_enabled || has(F::enabled)) put(F::enabled, event_.is_enabled);
  put_flag(F::recompute, event_.is_recompute);
  put_flag(F::early_stop, event_.is_early_stop);
  put_flag(has(F::grad_none) ? F::grad_none : F::none_grad, event_.is_grad_none);
  put_flag(F::persist, event_.is_persistent);
  put_flag(F::closure, event_.is_closure);
  put_flag(F::uncaught, event_.is_uncaught);
  put_flag(F::keep_graph, event_.keeps_graph);
}

void EventLineWriter::write_manager() {
  if (event_.manager) append_manager_state(*event_.manager, key(F::state));
  if (event_.argument) put(F::args, std::vector<std::int64_t>{*event_.argument});
  if (event_.returned) put(F::ret, *event_.returned);
}

}  // namespace

void append_json_line(const HookEvent& event, const NameTable& names, std::string& out) {
  EventLineWriter(event, names, out).write();
  out += '\n';
}

}  // namespace zeroproof

#include "sim/trace/event_fields.h"

#include <array>

#include "sim/trace/word_table.h"

namespace zeroproof {
namespace {

constexpr std::size_t kFieldCount = static_cast<std::size_t>(EventField::keep_graph) + 1;
constexpr std::size_t kKindCount = static_cast<std::size_t>(EventKind::mark) + 1;
static_assert(kFieldCount <= 64, "bit() needs a wider word");

constexpr std::array<std::string_view, kFieldCount> kFieldNames = {
    "",           "rec",       "lc",       "t",       "r",         "th",
    "k",          "gt",        "d",        "ft",      "method",    "label",
    "module",     "op",        "status",   "kind",    "device",    "dtype",
    "type",       "name",      "param",    "group",   "exc",       "message",
    "params",     "engine",    "call",     "parent",  "micro",     "gstep",
    "node",       "index",     "cseq",     "level",   "n",         "numel",
    "live_numel", "bytes",     "forward",  "async",   "recompute", "early_stop",
    "none",       "grad_none", "persist",  "enabled", "active",    "micro_step_id",
    "state",      "args",      "ret",      "peer",    "root",      "optimizer",
    "grads",      "closure",   "uncaught", "api",     "keep_graph"};
static_assert(kFieldNames.back() == "keep_graph");

using FieldTable = WordTable<EventField, 256>;
using KindTable = WordTable<EventKind, 256>;

constexpr FieldTable make_field_table() {
  std::array<FieldTable::Entry, kFieldCount - 1> entries;
  for (std::size_t i = 1; i < kFieldCount; ++i) {
    entries[i - 1] = {kFieldNames[i], static_cast<EventField>(i)};
  }
  return FieldTable(entries);
}

KindTable make_kind_table() {
  std::array<KindTable::Entry, kKindCount - 1> entries;
  for (std::size_t i = 1; i < kKindCount; ++i) {
    const auto kind = static_cast<EventKind>(i);
    entries[i - 1] = {event_kind_name(kind), kind};
  }
  return KindTable(entries);
}

using F = EventField;
using K = EventKind;

// Section 5 of docs/reference/trace_format.md: kind, name, index, required, optional.
constexpr std::array<EventShape, kKindCount> kShapes = {{
    {K::unknown, F::label, F::none, 0, 0},
    {K::module_fwd_pre, F::module, F::none, bits(F::module), bits(F::recompute)},
    {K::module_fwd_post, F::module, F::none, bits(F::module), bits(F::recompute)},
    {K::module_bwd_pre, F::module, F::none, bits(F::module), 0},
    {K::module_bwd_post, F::module, F::none, bits(F::module), 0},
    {K::tensor_hook, F::label, F::none, bits(F::label), bits(F::none_grad)},
    {K::param_tensor_hook, F::label, F::none, bits(F::param), bits(F::label, F::none_grad)},
    {K::param_post_acc, F::none, F::none, bits(F::param), bits(F::grad_none)},
    {K::multi_hook, F::label, F::none, bits(F::label), 0},
    {K::node_prehook, F::label, F::none, bits(F::label), 0},
    {K::node_posthook, F::label, F::none, bits(F::label), 0},
    {K::node_exec, F::name, F::none, bits(F::node), bits(F::name, F::call)},
    {K::gt_begin, F::api, F::none, bits(F::call), bits(F::parent, F::api, F::keep_graph)},
    {K::gt_end, F::none, F::none, bits(F::call), bits(F::exc)},
    {K::cb_queue, F::label, F::none, bits(F::label), 0},
    {K::cb_begin, F::label, F::none, bits(F::label), 0},
    {K::cb_end, F::label, F::none, bits(F::label), bits(F::exc)},
    {K::ckpt_forward_begin, F::label, F::n, bits(F::label), bits(F::n)},
    {K::ckpt_forward_end, F::label, F::n, bits(F::label), bits(F::n, F::exc)},
    {K::ckpt_recompute_begin, F::label, F::n, bits(F::label), bits(F::n)},
    {K::ckpt_recompute_end, F::label, F::n, bits(F::label), bits(F::n, F::early_stop, F::exc)},
    {K::fn_forward_begin, F::label, F::none, bits(F::label), 0},
    {K::fn_forward_end, F::label, F::none, bits(F::label), bits(F::exc)},
    {K::fn_backward_begin, F::label, F::none, bits(F::label), 0},
    {K::fn_backward_end, F::label, F::none, bits(F::label), bits(F::exc)},
    {K::ft_push, F::kind, F::level, bits(F::level, F::kind), 0},
    {K::ft_pop, F::kind, F::level, bits(F::level, F::kind), bits(F::exc)},
    {K::autocast_enter, F::device, F::none, bits(F::device, F::enabled), 0},
    {K::autocast_exit, F::device, F::none, bits(F::device), bits(F::exc)},
    {K::zparam_gather_begin, F::none, F::none, bits(F::params), bits(F::forward)},
    {K::zparam_gather_end, F::none, F::none, bits(F::params), bits(F::live_numel)},
    {K::zparam_partition, F::none, F::none, bits(F::params), bits(F::live_numel)},
    {K::zparam_status, F::status, F::none, bits(F::param, F::status),
     bits(F::active, F::persist, F::numel)},
    {K::zmod_fetch, F::module, F::index, bits(F::module), bits(F::forward, F::index, F::call)},
    {K::zmod_release, F::module, F::index, bits(F::module), bits(F::forward, F::index, F::call)},
    {K::bucket_add, F::dtype, F::none, bits(F::param), bits(F::dtype, F::group, F::numel)},
    {K::bucket_flush, F::dtype, F::none, 0, bits(F::params, F::dtype, F::group, F::numel)},
    {K::bucket_ready, F::none, F::index, bits(F::index), bits(F::params, F::bytes)},
    {K::coll_issue, F::op, F::cseq, bits(F::op, F::cseq),
     bits(F::group, F::bytes, F::async_op, F::params, F::peer, F::root)},
    {K::coll_complete, F::op, F::cseq, bits(F::op, F::cseq), bits(F::group, F::bytes, F::async_op)},
    {K::bhs_call, F::method, F::none, bits(F::method), bits(F::state, F::args)},
    {K::bhs_return, F::method, F::none, bits(F::method), bits(F::state, F::ret, F::exc)},
    {K::engine_call, F::method, F::index, bits(F::method),
     bits(F::micro, F::gstep, F::param, F::params, F::numel, F::index)},
    {K::engine_return, F::method, F::none, bits(F::method), bits(F::param, F::exc)},
    {K::opt_step, F::none, F::none, 0,
     bits(F::params, F::gstep, F::optimizer, F::grads, F::closure)},
    {K::opt_zero_grad, F::none, F::none, 0, bits(F::params, F::gstep)},
    {K::opt_state, F::none, F::none, 0, bits(F::param, F::gstep)},
    {K::exc, F::type, F::none, bits(F::type), bits(F::message, F::uncaught)},
    {K::mark, F::label, F::none, bits(F::label), bits(F::param, F::params, F::numel)},
}};

constexpr bool is_in_kind_order() {
  for (std::size_t i = 0; i < kKindCount; ++i) {
    if (static_cast<std::size_t>(kShapes[i].kind) != i) return false;
  }
  return true;
}
static_assert(is_in_kind_order());

}  // namespace

EventField event_field_of(std::string_view key) {
  static constexpr FieldTable kTable = make_field_table();
  return kTable.find(key);
}

std::string_view event_field_name(EventField field) {
  return kFieldNames[static_cast<std::size_t>(field)];
}

const EventShape& event_shape(EventKind kind) {
  return kShapes[static_cast<std::size_t>(kind)];
}

EventKind find_event_kind(std::string_view word) {
  static const KindTable kTable = make_kind_table();
  return kTable.find(word);
}

}  // namespace zeroproof

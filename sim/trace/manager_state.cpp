#include "sim/trace/manager_state.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

#include "sim/trace/word_table.h"

namespace zeroproof {
namespace {

enum class Attribute : std::uint8_t {
  none,
  remaining_hooks,
  post_hooks,
  active_depth,
  seen_this_step,
  ran_epilogue,
  hooks_fired,
  max_expected_hooks,
  callback_queued,
  callback_graph_task,
};

using AttributeTable = WordTable<Attribute, 64>;

constexpr std::array<AttributeTable::Entry, 9> kAttributes = {{
    {"remaining_grad_acc_hooks", Attribute::remaining_hooks},
    {"len(_grad_acc_post_hooks)", Attribute::post_hooks},
    {"backward_active_depth", Attribute::active_depth},
    {"backward_seen_this_step", Attribute::seen_this_step},
    {"epilogue_ran_this_backward", Attribute::ran_epilogue},
    {"hooks_fired_this_backward", Attribute::hooks_fired},
    {"max_expected_hooks_seen", Attribute::max_expected_hooks},
    {"post_backward_callback_queued", Attribute::callback_queued},
    {"post_backward_callback_graph_task_id", Attribute::callback_graph_task},
}};
constexpr AttributeTable kTable(kAttributes);
constexpr unsigned kAllAttributes = 0b11'1111'1110;

bool take_count(const JsonLineValue& value, std::int32_t& out) {
  out = static_cast<std::int32_t>(value.integer);
  return value.kind == JsonLineKind::integer && value.integer == out;
}

bool take_flag(const JsonLineValue& value, bool& out) {
  out = value.boolean;
  return value.kind == JsonLineKind::boolean;
}

bool take_task(const JsonLineValue& value, GraphTaskId& out) {
  if (value.kind == JsonLineKind::null) return true;
  out.value = value.integer;
  return value.kind == JsonLineKind::integer;
}

bool take(Attribute attribute, const JsonLineValue& value, BackwardState& state) {
  switch (attribute) {
    case Attribute::none:
      return true;
    case Attribute::remaining_hooks:
      return take_count(value, state.remaining_hooks);
    case Attribute::post_hooks:
      return take_count(value, state.post_hooks);
    case Attribute::active_depth:
      return take_count(value, state.active_depth);
    case Attribute::seen_this_step:
      return take_flag(value, state.is_backward_seen_this_step);
    case Attribute::ran_epilogue:
      return take_flag(value, state.ran_epilogue_this_backward);
    case Attribute::hooks_fired:
      return take_count(value, state.hooks_fired);
    case Attribute::max_expected_hooks:
      return take_count(value, state.max_expected_hooks);
    case Attribute::callback_queued:
      return take_flag(value, state.is_callback_queued);
    case Attribute::callback_graph_task:
      return take_task(value, state.callback_graph_task);
  }
  return true;
}

}  // namespace

ParseResult parse_manager_state(std::span<const JsonLineValue> values, std::size_t index,
                                std::optional<BackwardState>& out) {
  BackwardState state;
  unsigned seen = 0;
  for (std::size_t i = index + 1; i < values[index].end; i = values[i].end) {
    const Attribute attribute = kTable.find(values[i].key);
    if (attribute == Attribute::none) continue;
    seen |= 1U << static_cast<unsigned>(attribute);
    if (!take(attribute, values[i], state)) {
      return tl::unexpected(
          fmt::format("state: \"{}\" is {}, which is no value of this attribute; "
                      "correct the producer",
                      values[i].key, describe(values[i])));
    }
  }
  if (seen == kAllAttributes) out = state;
  return {};
}

void append_manager_state(const BackwardState& state, std::string& json) {
  const std::string task = state.callback_graph_task.is_none()
                               ? "null"
                               : fmt::format("{}", state.callback_graph_task.value);
  fmt::format_to(std::back_inserter(json),
                 R"json({{"remaining_grad_acc_hooks":{},"len(_grad_acc_post_hooks)":{},)json"
                 R"json("backward_active_depth":{},"backward_seen_this_step":{},)json"
                 R"json("epilogue_ran_this_backward":{},"hooks_fired_this_backward":{},)json"
                 R"json("max_expected_hooks_seen":{},"post_backward_callback_queued":{},)json"
                 R"json("post_backward_callback_graph_task_id":{}}})json",
                 state.remaining_hooks, state.post_hooks, state.active_depth,
                 state.is_backward_seen_this_step, state.ran_epilogue_this_backward,
                 state.hooks_fired, state.max_expected_hooks, state.is_callback_queued, task);
}

}  // namespace zeroproof

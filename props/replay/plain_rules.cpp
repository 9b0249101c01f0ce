#include "props/replay/plain_rules.h"

#include <fmt/format.h>

#include "props/replay/moment.h"

namespace zeroproof {
namespace {

constexpr std::string_view kPlainRule =
    "autograd C2: final callbacks run in the order of queueing, after the last node of their graph "
    "task and before backward returns";

}  // namespace

void PlainRules::on_event(const HookEvent& event) {
  switch (event.kind) {
    case EventKind::cb_queue:
      tasks_[event.graph_task].queued.push_back(event.name);
      break;
    case EventKind::cb_begin:
      on_begin(event);
      break;
    case EventKind::gt_end:
      on_end(event);
      break;
    default:
      break;
  }
}

void PlainRules::on_begin(const HookEvent& event) {
  const auto at = tasks_.find(event.graph_task);
  if (at == tasks_.end()) return;  // queued before the recording, or by C++
  Task& task = at->second;
  const std::size_t turn = task.begun++;
  if (turn < task.queued.size() && task.queued[turn] == event.name) return;
  findings_.find(
      {.kind = "callback.order",
       .what = fmt::format("callback {} ran where another was due", names_.text(event.name)),
       .rule = std::string(kPlainRule),
       .look_at = "callbacks queued from several threads"},
      event);
}

void PlainRules::on_end(const HookEvent& event) {
  const auto at = tasks_.find(event.graph_task);
  if (at == tasks_.end()) return;
  const Task task = std::move(at->second);
  tasks_.erase(at);
  if (task.begun >= task.queued.size()) return;
  const std::string_view first = names_.text(task.queued[task.begun]);
  if (event.is_exceptional())
    findings_.find(
        {.kind = "callback.dropped",
         .gravity = Gravity::hazard,
         .what =
             fmt::format("{} left the backward before {} of its {} final callbacks ran, the first "
                         "is {}",
                         names_.text(event.exception), task.queued.size() - task.begun,
                         task.queued.size(), first),
         .rule = "autograd C6: when a node fails, no final callback of that task runs; state that "
                 "they should reset stays as it was",
         .look_at =
             "what the callback cleans up: do it before the next forward or in zero_grad too"},
        event);
  else
    findings_.find(
        {.kind = "callback.missing",
         .what = fmt::format("the backward ended without its final callback {}", first),
         .rule = std::string(kPlainRule),
         .look_at =
             "the version of PyTorch: before 1.5 a nested backward took the callbacks of the "
             "outer one"},
        event);
}

}  // namespace zeroproof

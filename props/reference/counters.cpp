#include "props/reference/counters.h"
#include "props/reference/methods.h"

#include <fmt/format.h>

namespace zeroproof::reference {
namespace {

constexpr std::string_view kWindow = "window_holds:";

}  // namespace

void Counters::on_event(const HookEvent& event) {
  switch (event.kind) {
    case EventKind::gt_begin:
      if (scene_.graph_tasks() == 1) counts_ = tasks_ = 0;
      ++tasks_;
      return;
    case EventKind::mark:
      if (text(event.name).starts_with("count_used_parameters")) see_count(event);
      if (text(event.name).starts_with(kWindow)) see_window(event);
      if (text(event.name).starts_with("iteration_")) micro_steps_ = global_steps_ = std::nullopt;
      return;
    case EventKind::engine_call:
      return see_steps(event);
    case EventKind::engine_return:
      return see_return(event);
    default:
      return;
  }
}

void Counters::see_count(const HookEvent& event) {
  ++counts_;
  if (!world_.is_ours()) return;
  const int most = world_.counts_hooks ? tasks_ : 0;
  ledger_.judge(Rule::count_once, counts_ <= most, event.lc, [&] {
    return fmt::format(
        "{} queries for the expected hooks in {} phases of a backward, and {} are "
        "enough",
        counts_, tasks_, most);
  });
}

// An engine refreshes what its events say within its forward.
void Counters::see_steps(const HookEvent& event) {
  if (event.micro_step < 0 || text(event.name) == calls::kForward || !world_.is_ours()) return;
  if (micro_steps_)
    ledger_.judge(Rule::step_count, event.micro_step == *micro_steps_, event.lc, [&] {
      return fmt::format("the engine is in micro-batch {}, and {} have been", event.micro_step,
                         *micro_steps_);
    });
  if (global_steps_ && event.global_step >= 0)
    ledger_.judge(Rule::step_count, event.global_step == *global_steps_, event.lc, [&] {
      return fmt::format("the engine is in step {}, and {} have been", event.global_step,
                         *global_steps_);
    });
  micro_steps_ = event.micro_step;
  if (event.global_step >= 0) global_steps_ = event.global_step;
}

void Counters::see_return(const HookEvent& event) {
  const std::string_view method = text(event.name);
  if (method == calls::kLoad) micro_steps_ = global_steps_ = window_ = std::nullopt;
  if (event.is_exceptional()) return;
  if (method == calls::kStep && micro_steps_) ++*micro_steps_;
  if (method == calls::kModelStep && global_steps_) ++*global_steps_;
  if (method == "z12.step" || method == "z12.zero_grad" || method == "z3.zero_grad") window_ = 0;
}

void Counters::see_window(const HookEvent& event) {
  const std::string count(text(event.name).substr(kWindow.size()));
  const std::int64_t holds = std::strtoll(count.c_str(), nullptr, 10);
  if (window_)
    ledger_.judge(Rule::window_count, holds == *window_ + 1, event.lc, [&] {
      return fmt::format("a window holds {} backwards, and {} have joined it", holds, *window_ + 1);
    });
  window_ = holds;
}

}  // namespace zeroproof::reference

#include "props/reference/record_check.h"
#include "props/reference/methods.h"

#include <fmt/format.h>

#include <algorithm>

namespace zeroproof::reference {

void RecordCheck::on_event(const HookEvent& event) {
  last_ = event.lc;
  switch (event.kind) {
    case EventKind::engine_call:
      return open(event);
    case EventKind::engine_return:
      return close(event);
    case EventKind::cb_begin:
      ++callbacks_;
      return;
    case EventKind::cb_end:
      --callbacks_;
      return;
    case EventKind::bhs_call:
      ++manager_calls_;
      if (text(event.name) != "reset_for_new_step") return;
      has_resets_ = true;
      for (Call& call : calls_) ++call.resets;
      return;
    case EventKind::bhs_return:
      --manager_calls_;
      return;
    case EventKind::mark:
      return see_mark(event);
    default:
      return;
  }
}

void RecordCheck::see_mark(const HookEvent& event) {
  const std::string_view label = text(event.name);
  if (label.starts_with("overflow:"))
    overflow_ = label.substr(std::string_view("overflow:").size());
  const bool is_skipped = label == "step_skipped";
  if (!is_skipped && label != "step_applied") return;
  for (Call& call : calls_) ++call.outcomes;
  ledger_.check(
      Rule::step_outcome, (overflow_ == "1") == is_skipped, event.lc,
      is_skipped ? "a step without an overflow is skipped" : "a step with an overflow is applied");
}

void RecordCheck::open(const HookEvent& event) {
  const std::string_view method = text(event.name);
  if (method.starts_with("fallback.")) return;
  if (method == "engine.backward_prologue")
    for (Call& call : calls_) ++call.prologues;
  calls_.push_back({.method = std::string(method), .is_judged = event.transforms == 0});
}

void RecordCheck::close(const HookEvent& event) {
  const std::string_view method = text(event.name);
  const auto is_it = [&](const Call& call) { return call.method == method; };
  const auto at = std::find_if(calls_.rbegin(), calls_.rend(), is_it);
  if (at == calls_.rend()) return;
  const Call call = *at;
  calls_.erase(std::prev(at.base()), calls_.end());
  if (!event.is_exceptional() && call.is_judged && world_.is_ours()) judge(event, call);
}

void RecordCheck::judge(const HookEvent& event, const Call& call) {
  if (call.method == calls::kModelStep)
    ledger_.judge(Rule::step_outcome, call.outcomes == 1, event.lc,
                  [&] { return fmt::format("a step has {} outcomes", call.outcomes); });
  if (call.method == calls::kForward && has_resets_)
    ledger_.check(Rule::call_contents, call.resets > 0, event.lc,
                  "a forward of the engine does not begin a step of its manager");
  if (call.method == "engine.backward")
    ledger_.check(Rule::call_contents, call.prologues > 0, event.lc,
                  "a backward of the engine has no prologue");
}

void RecordCheck::finish(bool is_complete) {
  if (!is_complete || !world_.is_ours()) return;
  ledger_.check(Rule::bracket_end, callbacks_ == 0, last_,
                "a callback begins, and no event says that it ends");
  ledger_.check(Rule::bracket_end, manager_calls_ == 0, last_,
                "a call of the hook state manager has no return");
}

}  // namespace zeroproof::reference

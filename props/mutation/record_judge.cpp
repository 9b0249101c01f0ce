#include "props/mutation/record_judge.h"

#include <fmt/format.h>

#include <utility>

namespace zeroproof::mutation {

RecordJudge::RecordJudge(const NameTable& names) : names_(names) {}

std::string RecordJudge::finding() const {
  if (!finding_.empty()) return finding_;
  if (callbacks_ != 0) return "a callback begins, and nothing says that it ends";
  if (manager_calls_ != 0) return "a call of the hook state manager has no return";
  return {};
}

void RecordJudge::on_event(const HookEvent& event) {
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
      if (names_.text(event.name) != "reset_for_new_step") return;
      has_resets_ = true;
      for (Call& call : calls_) ++call.resets;
      return;
    case EventKind::bhs_return:
      --manager_calls_;
      return;
    case EventKind::mark: {
      const std::string_view label = names_.text(event.name);
      if (label == "step_applied" || label == "step_skipped")
        for (Call& call : calls_) ++call.outcomes;
      return;
    }
    default:
      return;
  }
}

void RecordJudge::find(std::string text) {
  if (finding_.empty()) finding_ = std::move(text);
}

void RecordJudge::open(const HookEvent& event) {
  if (names_.text(event.name) == "engine.backward_prologue")
    for (Call& call : calls_) ++call.prologues;
  calls_.push_back({.name = event.name, .is_counted = event.transforms == 0});
}

void RecordJudge::close(const HookEvent& event) {
  if (calls_.empty()) return;
  const Call call = calls_.back();
  calls_.pop_back();
  if (event.is_exceptional() || !call.is_counted) return;
  const std::string_view method = names_.text(call.name);
  if (method == "engine.take_model_step" && call.outcomes != 1)
    find(fmt::format("a step has {} outcomes", call.outcomes));
  if (method == "engine.forward" && has_resets_ && call.resets < 1)
    find("a forward of the engine does not begin a step of its manager");
  if (method == "engine.backward" && call.prologues < 1)
    find("a backward of the engine has no prologue");
}

}  // namespace zeroproof::mutation

#include "props/replay/hand_reductions.h"

#include <utility>

namespace zeroproof {

void HandReductions::on_event(const HookEvent& event) {
  switch (event.kind) {
    case EventKind::param_post_acc:
      if (!event.is_grad_none) open_.insert(event.param);
      break;
    case EventKind::coll_issue:
      on_collective(event);
      break;
    case EventKind::opt_step:
      on_step();
      break;
    default:
      break;
  }
}

void HandReductions::on_collective(const HookEvent& event) {
  if (!names_.text(event.name).starts_with("all_reduce")) return;
  for (const NameId param : event.params) {
    if (open_.erase(param) == 0 || abandoned_.contains(param)) continue;
    facts_.hand_reduced.emplace(names_.text(param));
    facts_.hand_group = names_.text(event.group);
  }
}

void HandReductions::on_step() {
  for (const NameId param : std::exchange(open_, {})) {
    abandoned_.insert(param);
    const auto known = facts_.hand_reduced.find(names_.text(param));
    if (known != facts_.hand_reduced.end()) facts_.hand_reduced.erase(known);
  }
}

}  // namespace zeroproof

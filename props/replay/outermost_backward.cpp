#include "props/replay/outermost_backward.h"

#include <utility>

namespace zeroproof {

void OutermostBackward::on_event(const HookEvent& event) {
  edge_ = Edge::none;
  switch (event.kind) {
    case EventKind::gt_begin:
      if (depth_++ > 0) break;
      edge_ = Edge::begin;
      unsynced_ = std::exchange(next_unsynced_, {});
      break;
    case EventKind::gt_end:
      if (depth_ > 0 && --depth_ == 0) edge_ = Edge::end;
      break;
    case EventKind::mark: {
      const std::string_view label = names_.text(event.name);
      if (label == "ddp.no_sync" || label == "fsdp2.no_sync") next_unsynced_.insert(event.engine);
      break;
    }
    default:
      break;
  }
}

}  // namespace zeroproof

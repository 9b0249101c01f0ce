#include "engine/journal.h"

#include "zeroproof/internal/model/transforms/transform_frame.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof {

void Journal::write(HookEvent event) {
  event.lc = ++clock_;
  event.rank = rank_;
  event.depth = depth_;
  if (autograd_) {
    event.thread = autograd_->current_thread();
    if (event.graph_task.is_none()) event.graph_task = autograd_->current_graph_task();
    const auto& frame = autograd_->local().transforms;
    event.transforms = frame ? static_cast<std::int32_t>(frame->level) : 0;
  }
  sink_.on_event(event);
}

void Journal::write(EventKind kind, std::string_view name) {
  HookEvent event;
  event.kind = kind;
  event.name = names_.intern(name);
  write(std::move(event));
}

}  // namespace zeroproof

#include "engine/manager_events.h"

namespace zeroproof {

void ManagerEvents::on_manager_call(ManagerMethod method, const BackwardState& before,
                                    std::optional<std::int64_t> argument) {
  HookEvent event;
  event.kind = EventKind::bhs_call;
  event.name = events_.name(manager_method_name(method));
  event.manager = before;
  event.argument = argument;
  events_.send(std::move(event));
}

void ManagerEvents::on_manager_return(ManagerMethod method, const BackwardState& after,
                                      std::optional<bool> returned, bool raised) {
  HookEvent event;
  event.kind = EventKind::bhs_return;
  event.name = events_.name(manager_method_name(method));
  event.manager = after;
  event.returned = returned;
  if (raised) {
    event.exception = events_.name("Exception");
    return events_.write_only(std::move(event));
  }
  events_.send(std::move(event));
}

}  // namespace zeroproof

#include "engine/events.h"

namespace zeroproof {

void Events::send(HookEvent event) const {
  event.engine = engine_;
  const EventKind kind = event.kind;
  const NameId name = event.name;
  if (journal_) journal_->write(std::move(event));
  if (faults_) faults_->reach(kind, name);
}

void Events::write_only(HookEvent event) const {
  event.engine = engine_;
  if (event.kind == EventKind::engine_call) {
    event.micro_step = micro_step_;
    event.global_step = global_step_;
  }
  if (journal_) journal_->write(std::move(event));
}

void Events::send(EventKind kind, std::string_view text) const {
  if (!is_on()) return;
  HookEvent event;
  event.kind = kind;
  event.name = name(text);
  send(std::move(event));
}

void Events::Call::begin(const Events& events, std::string_view method, NameId param) {
  HookEvent event;
  event.kind = EventKind::engine_call;
  event.name = events.name(method);
  event.param = param;
  event.micro_step = events.micro_step_;
  event.global_step = events.global_step_;
  events.send(std::move(event));
  events_ = &events;
  method_ = method;
  param_ = param;
  exceptions_ = std::uncaught_exceptions();
}

// A return is recorded but is no fault point: a destructor does not throw.
void Events::Call::end() const {
  if (!events_->journal_) return;
  HookEvent event;
  event.kind = EventKind::engine_return;
  event.engine = events_->engine_;
  event.name = events_->name(method_);
  event.param = param_;
  if (std::uncaught_exceptions() > exceptions_) event.exception = events_->name("Exception");
  events_->journal_->write(std::move(event));
}

}  // namespace zeroproof

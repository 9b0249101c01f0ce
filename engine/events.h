#pragma once

#include <cstdint>
#include <exception>
#include <string_view>
#include <vector>

#include "engine/journal.h"
#include "zeroproof/engine/runtime/runtime.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// What an engine says about itself, in the words of hooktrace, while a recorder listens. Every
// event is a fault point, recorded or not. Names are interned on first use.
class Events {
 public:
  Events(Runtime& runtime, EngineId engine)
      : journal_(runtime.journal()), faults_(runtime.faults()), engine_(engine) {}

  bool is_on() const { return journal_ != nullptr || faults_ != nullptr; }
  NameId name(std::string_view text) const {
    return journal_ ? journal_->names().intern(text) : NameId::none();
  }

  // Fills in the engine; `event.kind` and what belongs to it are the caller's.
  void send(HookEvent event) const;
  void send(EventKind kind, std::string_view text) const;
  // No fault point: for events while an exception passes.
  void write_only(HookEvent event) const;
  void mark(std::string_view label) const { send(EventKind::mark, label); }

  std::int64_t take_callback_number() const {
    return journal_ ? journal_->take_callback_number() : 0;
  }

  // Counters that engine.call events carry.
  void set_steps(std::int64_t micro_step, std::int64_t global_step) {
    micro_step_ = micro_step;
    global_step_ = global_step;
  }

  // engine.call, and engine.return at the end of the scope, with what passed through.
  class Call {
   public:
    Call(const Events& events, std::string_view method, NameId param = {}) {
      if (events.is_on()) [[unlikely]]
        begin(events, method, param);
    }
    ~Call() {
      if (events_) [[unlikely]]
        end();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    void begin(const Events& events, std::string_view method, NameId param);
    void end() const;

    const Events* events_ = nullptr;  // null: without a recorder
    std::string_view method_;
    NameId param_;
    int exceptions_ = 0;
  };

 private:
  Journal* journal_;
  FaultPoint* faults_;
  EngineId engine_;
  std::int64_t micro_step_ = -1;
  std::int64_t global_step_ = -1;
};

}  // namespace zeroproof

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

class Autograd;

// Writes what happens on one rank as HookEvents: the recorder's view of an engine, from within.
// Also what an instrumented model writes to, so that all events share one logical clock.
// All references must outlive it. Not thread-safe.
class Journal {
 public:
  Journal(EventSink& sink, NameTable& names, std::int32_t rank)
      : sink_(sink), names_(names), rank_(rank) {}

  NameTable& names() { return names_; }
  // Whose graph task, transforms and thread an event gets; null for none.
  void set_autograd(const Autograd* autograd) { autograd_ = autograd; }

  // Numbers the callbacks of all engines of the process, for their labels.
  std::int64_t take_callback_number() { return next_callback_++; }

  // How many backward and grad calls are open.
  void set_depth(std::int32_t depth) { depth_ = depth; }
  std::int32_t depth() const { return depth_; }

  // Fills in the clock, rank, thread, depth and, if it has none, the current graph task.
  void write(HookEvent event);
  void write(EventKind kind, std::string_view name);

 private:
  EventSink& sink_;
  NameTable& names_;
  std::int32_t rank_;
  const Autograd* autograd_ = nullptr;
  std::uint64_t clock_ = 0;
  std::int32_t depth_ = 0;
  std::int64_t next_callback_ = 0;
};

}  // namespace zeroproof

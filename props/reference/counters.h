#pragma once

#include <cstdint>
#include <optional>

#include "props/reference/part.h"

namespace zeroproof::reference {

// What an engine counts: expected hooks (docs/spec/zero/hooks.md 1.3), steps (engine.md 2.11) and
// the backwards of a window (gradients.md 2.18).
class Counters final : public Part {
 public:
  using Part::Part;

  void on_event(const HookEvent& event) override;

 private:
  void see_count(const HookEvent& event);
  void see_steps(const HookEvent& event);
  void see_return(const HookEvent& event);
  void see_window(const HookEvent& event);

  int counts_ = 0;  // of expected hooks, since the outermost graph task began
  int tasks_ = 0;   // graph tasks since then
  std::optional<std::int64_t> micro_steps_;  // none: an event has yet to say it
  std::optional<std::int64_t> global_steps_;
  std::optional<std::int64_t> window_ = 0;
};

}  // namespace zeroproof::reference

#pragma once

#include "engine/events.h"
#include "zeroproof/internal/engine/hooks/hook_state_manager.h"

namespace zeroproof {

// The calls of a hook-state manager as bhs.call and bhs.return events.
class ManagerEvents final : public ManagerObserver {
 public:
  explicit ManagerEvents(const Events& events) : events_(events) {}

  void on_manager_call(ManagerMethod method, const BackwardState& before,
                       std::optional<std::int64_t> argument) override;
  void on_manager_return(ManagerMethod method, const BackwardState& after,
                         std::optional<bool> returned, bool raised) override;

 private:
  const Events& events_;
};

}  // namespace zeroproof

#include "props/reference/boundary.h"
#include "props/reference/methods.h"

namespace zeroproof::reference {
namespace {

constexpr std::string_view kOverride = "gradient_accumulation_boundary:";

}  // namespace

void Boundary::follow(const HookEvent& event, std::string_view name) {
  if (event.kind == EventKind::mark && name.starts_with(kOverride)) {
    const std::string_view value = name.substr(kOverride.size());
    override_ = value == "auto" ? std::nullopt : std::optional(value == "true");
  }
  const bool is_call = event.kind == EventKind::engine_call;
  if (!is_call && event.kind != EventKind::engine_return) return;
  if (name == calls::kLoad && !is_call) is_known_ = false;
  if (name == calls::kStep) is_step_running_ = is_call;
  if (is_call && event.micro_step >= 0 && !is_known_) {
    micro_ = event.micro_step;
    is_known_ = name != calls::kForward;  // an engine reports its counters within the forward
  }
  if (name == calls::kStep && !is_call && !event.is_exceptional()) ++micro_;
}

bool Boundary::is_boundary() const {
  if (override_) return *override_;
  if (!config_.managed_gradient_accumulation) return is_step_running_;
  return (micro_ + 1) % config_.gradient_accumulation_steps == 0;
}

}  // namespace zeroproof::reference

#pragma once

#include <memory>

#include "zeroproof/engine/hooks/policy_decorator.h"

namespace zeroproof::mutation {

using zeroproof::PolicyDecorator;

// A15: the end-of-backward callback is queued on the task that runs when the first hook fires.
std::unique_ptr<HookPolicy> queue_callback_at_first_hook(std::unique_ptr<HookPolicy> policy);
// H13: a lock around every backward that reports to its owner where it would wait for itself.
std::unique_ptr<HookPolicy> lock_backwards(std::unique_ptr<HookPolicy> policy);
// A16: one list of callbacks for all tasks, run and cleared at the end of any of them.
std::unique_ptr<HookPolicy> share_callbacks(std::unique_ptr<HookPolicy> policy);

}  // namespace zeroproof::mutation

#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "engine/departure.h"
#include "engine/hooks/hook_policy.h"
#include "engine/quirks.h"
#include "model/result.h"

namespace zeroproof {

// How a policy learns that a backward ended (zero_semantics 1.5).
enum class PolicyMode { graph_task_callback, count_fallback };

std::string_view policy_mode_name(PolicyMode mode);
Result<PolicyMode> policy_mode_of(std::string_view name);

// One selectable policy.
struct PolicyInfo {
  std::string_view id;           // pr7665 ... pr8245, x2, exact
  std::string_view source;       // the upstream change, or ours
  std::string_view description;  // one sentence
  bool has_manager = false;      // stands on the hook-state manager, so recorded calls can drive it
  bool can_count = true;         // works in PolicyMode::count_fallback
  std::unique_ptr<HookPolicy> (*make)() = nullptr;
};

// In historical order, ours last.
std::span<const PolicyInfo> policy_catalogue();

// An error naming the known ids when there is none of that name.
Result<const PolicyInfo*> find_policy(std::string_view id);

// An error when the policy cannot work in that mode.
Result<std::unique_ptr<HookPolicy>> make_policy(std::string_view id, PolicyMode mode);

// One factory per policy file.
std::unique_ptr<HookPolicy> make_pr7665();
std::unique_ptr<HookPolicy> make_pr7780();
std::unique_ptr<HookPolicy> make_pr7886();
std::unique_ptr<HookPolicy> make_pr8245();
std::unique_ptr<HookPolicy> make_x2();
std::unique_ptr<HookPolicy> make_exact();
// With H20 or H23, the only ones that are a policy's; the upstream policies are as they are.
std::unique_ptr<HookPolicy> make_exact(const Quirks& quirks, Departure departure = {});

}  // namespace zeroproof

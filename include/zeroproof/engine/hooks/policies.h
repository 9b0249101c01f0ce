#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "zeroproof/engine/hooks/hook_policy.h"
#include "zeroproof/engine/quirks.h"
#include "zeroproof/internal/engine/release.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// How a policy learns that a backward ended (docs/spec/zero.md 1.5).
enum class PolicyMode { graph_task_callback, count_fallback };

std::string_view policy_mode_name(PolicyMode mode);
Result<PolicyMode> policy_mode_of(std::string_view name);

// One selectable policy. Upstream's are named by the first release that behaves so.
struct PolicyInfo {
  std::string_view id;                   // deepspeed-0.18.3 ..., deepspeed-pr8245, x2, exact
  std::string_view former_id;            // its name before releases named it; empty for none
  std::optional<ReleaseRange> releases;  // that behave so; empty: no release does
  std::string_view source;               // the upstream change, or ours
  std::string_view description;          // one sentence
  bool has_manager = false;  // stands on the hook-state manager, so recorded calls can drive it
  bool can_count = true;     // works in PolicyMode::count_fallback
  std::unique_ptr<HookPolicy> (*make)() = nullptr;

  // "0.18.7 to 0.19.5"; empty where no release behaves so.
  std::string releases_text() const;
};

// In historical order, ours last.
std::span<const PolicyInfo> policy_catalogue();

// By id, by former id (pr7886), or by any release of its range (deepspeed-0.19.2, 0.19.2). An error
// names what is known.
Result<const PolicyInfo*> find_policy(std::string_view name);

// The id of the policy of that name; the name itself where there is none.
std::string policy_id(std::string_view name);

// An error when the policy cannot work in that mode.
Result<std::unique_ptr<HookPolicy>> make_policy(std::string_view name, PolicyMode mode);

// One factory per policy file.
std::unique_ptr<HookPolicy> make_deepspeed_0_18_3();
std::unique_ptr<HookPolicy> make_deepspeed_0_18_5();
std::unique_ptr<HookPolicy> make_deepspeed_0_18_7();
std::unique_ptr<HookPolicy> make_deepspeed_0_19_6();
std::unique_ptr<HookPolicy> make_deepspeed_pr8245();
std::unique_ptr<HookPolicy> make_x2();
std::unique_ptr<HookPolicy> make_exact();
// With H20 or H23, the only ones that are a policy's; the upstream policies are as they are.
std::unique_ptr<HookPolicy> make_exact(const Quirks& quirks);

}  // namespace zeroproof

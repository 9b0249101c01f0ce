#include "engine/hooks/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace zeroproof {
namespace {

constexpr std::array kCatalogue = {
    PolicyInfo{.id = "pr7665",
               .source = "#7665",
               .description = "counts the hooks once and runs the epilogue at zero",
               .has_manager = false,
               .can_count = true,
               .make = make_pr7665},
    PolicyInfo{.id = "pr7780",
               .source = "#7780",
               .description = "end-of-graph callback; counts again in every hook",
               .has_manager = true,
               .can_count = true,
               .make = make_pr7780},
    PolicyInfo{.id = "pr7886",
               .source = "#7886",
               .description = "end-of-graph callback; counts once a phase",
               .has_manager = true,
               .can_count = true,
               .make = make_pr7886},
    PolicyInfo{.id = "pr8245",
               .source = "#8245",
               .description = "#7886 plus recovery from an aborted backward",
               .has_manager = true,
               .can_count = true,
               .make = make_pr8245},
    PolicyInfo{.id = "x2",
               .source = "#8135",
               .description = "#7886 plus a prologue for each backward over a retained graph",
               .has_manager = true,
               .can_count = true,
               .make = make_x2},
    PolicyInfo{.id = "exact",
               .source = "zeroproof",
               .description = "decides by graph task, never by counting",
               .has_manager = false,
               .can_count = false,
               .make = make_exact},
};

}  // namespace

std::string_view policy_mode_name(PolicyMode mode) {
  return mode == PolicyMode::graph_task_callback ? "graph_task_callback" : "count_fallback";
}

Result<PolicyMode> policy_mode_of(std::string_view name) {
  if (name == "graph_task_callback") return PolicyMode::graph_task_callback;
  if (name == "count_fallback") return PolicyMode::count_fallback;
  return fail(ErrorCode::usage,
              fmt::format("unknown mode '{}': use graph_task_callback or count_fallback", name));
}

std::span<const PolicyInfo> policy_catalogue() {
  return kCatalogue;
}

Result<const PolicyInfo*> find_policy(std::string_view id) {
  const auto at = std::find_if(kCatalogue.begin(), kCatalogue.end(),
                               [&](const PolicyInfo& info) { return info.id == id; });
  if (at != kCatalogue.end()) return &*at;
  std::string known;
  for (const PolicyInfo& info : kCatalogue) known += fmt::format(" {}", info.id);
  return fail(ErrorCode::usage, fmt::format("unknown policy '{}': use one of{}", id, known));
}

Result<std::unique_ptr<HookPolicy>> make_policy(std::string_view id, PolicyMode mode) {
  const auto info = find_policy(id);
  if (!info) return tl::unexpected(info.error());
  if (mode == PolicyMode::count_fallback && !(*info)->can_count) {
    return fail(ErrorCode::usage,
                fmt::format("policy '{}' never counts hooks: it needs the graph-task callback API, "
                            "so use mode graph_task_callback",
                            id));
  }
  return (*info)->make();
}

}  // namespace zeroproof

#include "zeroproof/engine/hooks/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "model/nearest_name.h"

namespace zeroproof {
namespace {

constexpr std::array kPolicies = {
    PolicyInfo{.id = "deepspeed-0.18.3",
               .former_id = "pr7665",
               .releases = ReleaseRange{{0, 18, 3}, {0, 18, 4}},
               .source = "#7665",
               .description = "counts the hooks once and runs the epilogue at zero",
               .has_manager = false,
               .can_count = true,
               .make = make_deepspeed_0_18_3},
    PolicyInfo{.id = "deepspeed-0.18.5",
               .former_id = "pr7780",
               .releases = ReleaseRange{{0, 18, 5}, {0, 18, 6}},
               .source = "#7780",
               .description = "end-of-graph callback; counts again in every hook",
               .has_manager = true,
               .can_count = true,
               .make = make_deepspeed_0_18_5},
    PolicyInfo{.id = "deepspeed-0.18.7",
               .former_id = "pr7886",
               .releases = ReleaseRange{{0, 18, 7}, {0, 19, 5}},
               .source = "#7886",
               .description = "end-of-graph callback; counts once a phase",
               .has_manager = true,
               .can_count = true,
               .make = make_deepspeed_0_18_7},
    PolicyInfo{.id = "deepspeed-0.19.6",
               .former_id = "",
               .releases = ReleaseRange{{0, 19, 6}, {0, 19, 8}},
               .source = "#8245",
               .description =
                   "deepspeed-0.18.7, but a manual backward at a depth above one has no epilogue",
               .has_manager = true,
               .can_count = true,
               .make = make_deepspeed_0_19_6},
    PolicyInfo{.id = "deepspeed-pr8245",
               .former_id = "pr8245",
               .releases = {},
               .source = "#8245, a branch that no release has",
               .description = "deepspeed-0.18.7 plus recovery from an aborted backward",
               .has_manager = true,
               .can_count = true,
               .make = make_deepspeed_pr8245},
    PolicyInfo{
        .id = "x2",
        .former_id = "",
        .releases = {},
        .source = "#8135, a proposal that no release has",
        .description = "deepspeed-0.18.7 plus a prologue for each backward over a retained graph",
        .has_manager = true,
        .can_count = true,
        .make = make_x2},
    PolicyInfo{.id = "exact",
               .former_id = "",
               .releases = {},
               .source = "zeroproof",
               .description = "decides by graph task, never by counting",
               .has_manager = false,
               .can_count = false,
               .make = make_exact},
};

bool is_named(const PolicyInfo& info, std::string_view name,
              const std::optional<Release>& release) {
  const bool is_former = !info.former_id.empty() && info.former_id == name;
  const bool is_within = release && info.releases && info.releases->contains(*release);
  return info.id == name || is_former || is_within;
}

std::string did_you_mean_policy(std::string_view name) {
  std::vector<std::string_view> names;
  for (const PolicyInfo& info : kPolicies) {
    names.push_back(info.id);
    if (!info.former_id.empty()) names.push_back(info.former_id);
  }
  return did_you_mean(name, names);
}

std::string known_policies() {
  std::string known;
  for (const PolicyInfo& info : kPolicies) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", info.id);
    if (info.releases) known += fmt::format(" (DeepSpeed {})", info.releases_text());
  }
  return known;
}

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
  return kPolicies;
}

std::string PolicyInfo::releases_text() const {
  return releases ? fmt::format("{} to {}", releases->first.text(), releases->last.text()) : "";
}

Result<const PolicyInfo*> find_policy(std::string_view name) {
  const Result<Release> parsed = Release::parse(name);
  const std::optional<Release> release = parsed ? std::optional(*parsed) : std::nullopt;
  const auto at = std::ranges::find_if(
      kPolicies, [&](const PolicyInfo& info) { return is_named(info, name, release); });
  if (at != kPolicies.end()) return &*at;
  if (!release)
    return fail(ErrorCode::usage,
                fmt::format("unknown policy '{}': {}", name, did_you_mean_policy(name)));
  return fail(ErrorCode::usage, fmt::format("no policy is that of DeepSpeed {}: use one of {}",
                                            release->text(), known_policies()));
}

std::string policy_id(std::string_view name) {
  const auto info = find_policy(name);
  return std::string(info ? (*info)->id : name);
}

Result<std::unique_ptr<HookPolicy>> make_policy(std::string_view name, PolicyMode mode) {
  const auto info = find_policy(name);
  if (!info) return tl::unexpected(info.error());
  if (mode == PolicyMode::count_fallback && !(*info)->can_count) {
    return fail(ErrorCode::usage,
                fmt::format("policy '{}' never counts hooks: it needs the graph-task callback API, "
                            "so use mode graph_task_callback",
                            name));
  }
  return (*info)->make();
}

}  // namespace zeroproof

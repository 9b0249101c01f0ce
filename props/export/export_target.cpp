#include "props/export/export_target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "props/exploration.h"
#include "props/exploration_status.h"
#include "props/export/complete_program.h"
#include "props/registry.h"
#include "props/replay/schedule_replay.h"

namespace zeroproof {
namespace {

bool is_named(const Property& property, std::string_view name) {
  return property.number == name || property.id == name;
}

// What a schedule says about itself: the scenario, and what it promises to falsify.
struct Request {
  ExplorationOptions explore;
  bool has_policy = false;
  std::vector<std::string> promised;  // property numbers
};

Result<Request> request_of_schedule(const std::string& word) {
  auto schedule =
      is_schedule_text(word) ? parse_schedule(word, "this schedule") : read_schedule_file(word);
  if (!schedule) return tl::unexpected(schedule.error());
  Request request;
  const auto promise = schedule->settings.find("falsified");
  if (promise != schedule->settings.end()) {
    std::string number;
    for (const char byte : promise->second + "+") {
      if (byte != '+') {
        number += byte;
        continue;
      }
      if (number != "none" && !number.empty()) request.promised.push_back(number);
      number.clear();
    }
    schedule->settings.erase(promise);
  }
  auto options = options_of(*schedule);
  if (!options) return tl::unexpected(options.error());
  request.explore = std::move(*options);
  request.has_policy = true;
  return request;
}

Result<Request> request_of(const std::string& word, const ExportTargetOptions& options) {
  Request request;
  if (is_schedule_word(word)) {
    auto scheduled = request_of_schedule(word);
    if (!scheduled) return scheduled;
    request = std::move(*scheduled);
  } else {
    request.explore.scenario = word;
  }
  if (!options.policy.empty()) {
    const std::string policy = policy_id(options.policy);
    if (policy != request.explore.policy) request.promised.clear();
    request.explore.policy = policy;
    request.has_policy = true;
  }
  if (options.mode) request.explore.mode = *options.mode;
  request.explore.order_model = OrderModel::faithful;  // PyTorch's own order
  request.explore.minimizes = options.minimizes;
  return request;
}

// What the scenario breaks in PyTorch's order, with everything in it that a script needs.
std::vector<ScriptClaim> claims_of(const Scenario& scenario, const ExplorationOptions& explore) {
  Schedule schedule{.scenario = scenario.id};
  schedule.settings = {{"policy", explore.policy},
                       {"mode", std::string(policy_mode_name(explore.mode))},
                       {"order_model", std::string(order_model_name(OrderModel::faithful))}};
  const auto run = run_schedule(schedule, scenario);
  std::vector<ScriptClaim> claims;
  if (!run) return claims;
  for (const Verdict& verdict : run->verdicts)
    if (verdict.status == Status::falsified)
      claims.emplace_back(verdict.property->number, verdict.property->statement);
  return claims;
}

bool has_claim(const std::vector<ScriptClaim>& claims, std::string_view number) {
  return std::any_of(claims.begin(), claims.end(),
                     [&](const ScriptClaim& claim) { return claim.first == number; });
}

// The smallest scenario that a script can run and that still breaks all of `wanted`.
void take_minimized(const ExplorationReport& report, const std::vector<std::string>& wanted,
                    ExportTarget& target) {
  for (const ExplorationFinding& finding : report.findings) {
    if (!finding.is_minimal) continue;
    Scenario smaller = finding.minimized;
    smaller.program = complete_program(std::move(smaller.program));
    const auto claims = claims_of(smaller, report.options);
    const bool has_all = std::all_of(wanted.begin(), wanted.end(), [&](const std::string& number) {
      return has_claim(claims, number);
    });
    if (!has_all) continue;  // it fails only without what a script needs
    target.scenario = std::move(smaller);
    target.is_minimized = true;
    return;
  }
}

Result<void> take_findings(const ExplorationReport& report, const ExportTargetOptions& options,
                           ExportTarget& target) {
  std::vector<std::string> wanted;
  for (const ExplorationFinding& finding : report.findings)
    if (options.property.empty() || is_named(*finding.property, options.property))
      wanted.emplace_back(finding.property->number);
  if (wanted.empty() && !options.property.empty())
    return fail(ErrorCode::usage,
                fmt::format("export: --property {}: {} does not break it under {} in PyTorch's "
                            "order; it breaks: {}",
                            options.property, report.options.scenario, report.options.policy,
                            report.findings.empty() ? "no property" : falsified_numbers(report)));
  if (options.minimizes && !wanted.empty()) take_minimized(report, wanted, target);
  target.claims = claims_of(target.scenario, report.options);
  if (!options.property.empty())
    std::erase_if(target.claims,
                  [&](const ScriptClaim& claim) { return claim.first != wanted[0]; });
  return {};
}

}  // namespace

Result<ExportTarget> export_target(const std::string& word, const ExportTargetOptions& options) {
  const auto request = request_of(word, options);
  if (!request) return tl::unexpected(request.error());
  auto scenario = load_scenario(request->explore.scenario);
  if (!scenario) return tl::unexpected(scenario.error());
  ExportTarget target{.scenario = std::move(*scenario), .mode = request->explore.mode};
  if (!request->has_policy) {
    if (!options.property.empty())
      return fail(ErrorCode::usage,
                  "export: --property needs --policy: whose behaviour breaks it?");
    target.scenario.program = complete_program(std::move(target.scenario.program));
    return target;
  }
  target.policy = request->explore.policy;
  if (request->explore.params != 4)
    target.scenario = widen(target.scenario, request->explore.params / 4);
  const auto report = explore_scenario(request->explore);
  if (!report) return tl::unexpected(report.error());
  if (auto taken = take_findings(*report, options, target); !taken)
    return tl::unexpected(taken.error());
  for (const std::string& number : request->promised) {
    if (!has_claim(target.claims, number) && options.property.empty())
      target.elsewhere.push_back(number);
  }
  return target;
}

}  // namespace zeroproof

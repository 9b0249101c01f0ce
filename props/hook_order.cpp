#include "props/hook_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "sim/hook_order/run.h"
#include "sim/hook_order/search.h"
#include "sim/scheduler.h"

namespace zeroproof {
namespace {

using hook_order::Defect;
using hook_order::defect_sentence;
using hook_order::Finding;
using hook_order::parse_settings;
using hook_order::Property;
using hook_order::Run;
using hook_order::search;
using hook_order::SearchResult;
using hook_order::Settings;
using hook_order::settings_text;
using hook_order::shortened;
using hook_order::World;

constexpr std::uint64_t kExecutionsBetweenStopRequests = 256;

std::string planted_in(const Settings& settings) {
  std::string text;
  if (settings.defect != Defect::none) text = defect_sentence(settings.defect);
  for (const QuirkInfo& info : quirk_catalogue())
    if (settings.quirks.has(info.quirk))
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", info.id, info.effect);
  return text;
}

HookOrderFinding in_words(World& world, const Finding& finding) {
  HookOrderFinding words{finding.property, finding.explanation, {}};
  for (const hook_order::Move& move : shortened(world, finding).moves)
    words.moves.emplace_back(world.name(move));
  return words;
}

void search_all(World& world, const HookOrderOptions& options, HookOrderReport& report) {
  const SearchResult found = search(world, {.is_reduced = options.is_reduced,
                                            .should_stop = options.should_stop,
                                            .on_progress = options.on_progress});
  report.is_reduced = options.is_reduced;
  report.has_exhausted = found.has_exhausted;
  report.states = found.states;
  report.transitions = found.transitions;
  if (found.states > 0)
    report.bytes_per_state =
        static_cast<double>(found.store_bytes) / static_cast<double>(found.states);
  report.executions = found.executions;
  report.events = found.events;
  report.divergence = found.divergence;
  for (const Finding& finding : found.findings) report.findings.push_back(in_words(world, finding));
}

// The shortest run of each property, of those met.
void keep(std::vector<Finding>& findings, const Run& run) {
  auto place = std::ranges::lower_bound(findings, run.violated, {}, &Finding::property);
  if (place == findings.end() || place->property != run.violated) {
    findings.insert(place, {run.violated, run.explanation, run.moves});
  } else if (run.moves.size() < place->moves.size()) {
    *place = {run.violated, run.explanation, run.moves};
  }
}

Result<void> sample(World& world, const HookOrderOptions& options, HookOrderReport& report) {
  auto scheduler = make_scheduler(options.scheduler, options.seed);
  if (!scheduler) return tl::unexpected(scheduler.error());
  std::vector<Finding> findings;
  const std::uint64_t executions = options.scheduler == "fifo" ? 1 : options.executions;
  for (; report.executions < executions; ++report.executions) {
    const bool asks = report.executions % kExecutionsBetweenStopRequests == 0;
    if (asks && options.on_progress)
      options.on_progress({.executions = report.executions, .findings = findings.size()});
    if (asks && options.should_stop && options.should_stop() != StopRequest::none) break;
    if (!(*scheduler)->new_execution()) break;
    const Run run = hook_order::run(world, **scheduler, {.keeps_moves = true});
    (*scheduler)->end_execution({});
    if (run.violated != Property::none) keep(findings, run);
  }
  report.events = world.events();
  for (const Finding& finding : findings) report.findings.push_back(in_words(world, finding));
  return {};
}

}  // namespace

Result<HookOrderReport> explore_hook_order(const HookOrderOptions& options) {
  const auto settings = parse_settings(options.words);
  if (!settings) return tl::unexpected(settings.error());
  HookOrderReport report{.settings = settings_text(*settings),
                         .planted = planted_in(*settings),
                         .scheduler = options.scheduler};
  World world(*settings);
  if (options.scheduler == "exhaustive") {
    search_all(world, options, report);
  } else if (auto done = sample(world, options, report); !done) {
    return tl::unexpected(done.error());
  }
  return report;
}

}  // namespace zeroproof

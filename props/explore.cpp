#include "zeroproof/props/explore.h"

#include <utility>

#include "props/exploration.h"

namespace zeroproof {

Result<ExploreAnswer> explore_every_order(const ExploreRequest& request) {
  const PolicyMode mode =
      request.has_callback_api ? PolicyMode::graph_task_callback : PolicyMode::count_fallback;
  auto report = explore_scenario({.scenario = request.scenario,
                                  .policy = request.policy,
                                  .mode = mode,
                                  .params = request.parameters,
                                  .budget = {.executions = request.executions_max}});
  if (!report) return tl::unexpected(report.error());
  return ExploreAnswer{.executions = report->executions,
                       .has_held = report->has_held(),
                       .verdicts = std::move(report->verdicts)};
}

}  // namespace zeroproof

#pragma once

#include <unistd.h>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

#include "props/exploration.h"

namespace zeroproof::testing {

// Explores a scenario that stands in no file yet; `options.scenario` is set here.
inline ExplorationReport explore_written(const Scenario& scenario, ExplorationOptions options) {
  options.scenario = "/tmp/zeroproof_explored_" + std::to_string(getpid()) + ".json";
  std::ofstream(options.scenario) << scenario_text(scenario);
  auto report = explore_scenario(options);
  std::remove(options.scenario.c_str());
  if (!report) throw std::runtime_error(report.error().text + "\n" + scenario_text(scenario));
  return std::move(*report);
}

// What a report that has not held says, in a line.
inline std::string failing_property(const ExplorationReport& report) {
  if (!report.findings.empty()) {
    const ExplorationFinding& finding = report.findings.front();
    return std::string(finding.property->number) + ": " + finding.finding.text;
  }
  if (!report.divergence.empty()) return report.divergence;
  if (!report.orders_explored) return "the orders were not explored to the end";
  return "orders explored " + report.orders_explored->text() + ", linear extensions " +
         (report.linear_extensions ? report.linear_extensions->text()
                                   : report.linear_extensions_reason);
}

}  // namespace zeroproof::testing

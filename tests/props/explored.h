#pragma once

#include <unistd.h>
#include <cstdio>
#include <fstream>
#include <map>
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

// Every field of a program in words; tasks by their names, because files keep no order of them.
inline std::string every_field(const ProtocolProgram& program) {
  std::string out;
  const auto add = [&](const std::string& text) { out += text + ' '; };
  const auto add_number = [&](auto number) { add(std::to_string(number)); };
  const auto add_task = [&](TaskIndex task) { add(task.is_none() ? "-" : program.task(task).id); };
  for (const ProtocolEngineSpec& engine : program.engines) {
    add(engine.name);
    for (const std::string& param : engine.params) add(param);
    add_number(engine.idle_leaf_modules);
    add_number(engine.requires_scale);
  }
  std::map<std::string, const GraphTaskProgram*> tasks;
  for (const GraphTaskProgram& task : program.tasks) tasks[task.id] = &task;
  for (const auto& [id, task] : tasks) {
    add("\n" + id);
    for (const ProtocolNode& node : task->nodes) {
      add("\n" + node.id);
      add_number(static_cast<int>(node.kind));
      add_number(node.kind == NodeKind::accumulate ? 0 : node.sequence_nr);
      for (const std::size_t next : node.next) add_number(next);
      const bool has_engine =
          node.kind == NodeKind::output_hook || node.kind == NodeKind::accumulate;
      add_number(has_engine ? node.engine.value : -1);
      add(node.forward + "," + node.param);
      if (node.recomputed) add(node.recomputed->label);
      if (node.recomputed) add_number(node.recomputed->engine.value);
      add_task(node.nested);
    }
  }
  for (const Statement& statement : program.statements) {
    add("\n");
    add_number(static_cast<int>(statement.kind));
    const bool is_forward = statement.kind == StatementKind::forward;
    add_number(is_forward ? statement.forward.engine.value : statement.engine.value);
    add(statement.forward.label);
    for (const TaskIndex task : statement.forward.pre_user_backwards) add_task(task);
    add_task(statement.task);
    add_number(statement.is_through_engine);
  }
  return out;
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

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "props/scenario.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kKindNames[] = {"op", "output_hook", "accumulate", "recompute", "raise"};

OrderedJson engine_json(const ProtocolEngineSpec& engine) {
  OrderedJson json{{"name", engine.name}, {"params", engine.params}};
  if (engine.idle_leaf_modules != 0) json["idle_leaf_modules"] = engine.idle_leaf_modules;
  if (engine.requires_scale) json["requires_scale"] = true;
  return json;
}

class ScenarioPrinter {
 public:
  explicit ScenarioPrinter(const Scenario& scenario) : scenario_(scenario) {}

  std::string text() const {
    const ProtocolProgram& program = scenario_.program;
    std::string out = fmt::format("{{\n  \"schema\": \"zeroproof.scenario/1\",\n  \"id\": {},\n",
                                  OrderedJson(scenario_.id).dump());
    out += fmt::format("  \"title\": {},\n  \"source\": {},\n", OrderedJson(scenario_.title).dump(),
                       OrderedJson(scenario_.source).dump());
    OrderedJson engines = OrderedJson::array();
    for (const ProtocolEngineSpec& engine : program.engines) engines.push_back(engine_json(engine));
    out += fmt::format("  \"engines\": {},\n  \"tasks\": {{\n", lines(engines, 2));
    for (std::size_t at = 0; at < program.tasks.size(); ++at) {
      out += fmt::format("    {}: {}{}\n", OrderedJson(program.tasks[at].id).dump(),
                         lines(nodes_json(program.tasks[at]), 4),
                         at + 1 < program.tasks.size() ? "," : "");
    }
    OrderedJson statements = OrderedJson::array();
    for (const Statement& statement : program.statements) {
      statements.push_back(statement_json(statement));
    }
    return out + fmt::format("  }},\n  \"program\": {}\n}}\n", lines(statements, 2));
  }

 private:
  // One element a line.
  static std::string lines(const OrderedJson& array, std::size_t indent) {
    std::string out = "[\n";
    for (std::size_t at = 0; at < array.size(); ++at) {
      out +=
          std::string(indent + 2, ' ') + array[at].dump() + (at + 1 < array.size() ? ",\n" : "\n");
    }
    return out + std::string(indent, ' ') + "]";
  }

  std::string engine_name(EngineId id) const {
    return scenario_.program.engines[static_cast<std::size_t>(id.value)].name;
  }

  std::string task_name(TaskIndex index) const { return scenario_.program.task(index).id; }

  OrderedJson nodes_json(const GraphTaskProgram& task) const {
    OrderedJson nodes = OrderedJson::array();
    for (const ProtocolNode& node : task.nodes) {
      OrderedJson json{{"id", node.id}, {"kind", kKindNames[static_cast<std::size_t>(node.kind)]}};
      if (node.kind != NodeKind::accumulate) json["seq"] = node.sequence_nr;
      if (node.kind == NodeKind::accumulate) json["param"] = node.param;
      if (node.kind == NodeKind::output_hook) json["forward"] = node.forward;
      if (node.kind == NodeKind::output_hook || node.kind == NodeKind::accumulate) {
        json["engine"] = engine_name(node.engine);
      }
      if (node.kind == NodeKind::recompute) {
        json["task"] = task_name(node.nested);
        if (node.recomputed) {
          json["forward"] = node.recomputed->label;
          json["engine"] = engine_name(node.recomputed->engine);
        }
      }
      if (!node.next.empty()) {
        OrderedJson next = OrderedJson::array();
        for (const std::size_t target : node.next) next.push_back(task.nodes[target].id);
        json["next"] = std::move(next);
      }
      nodes.push_back(std::move(json));
    }
    return nodes;
  }

  OrderedJson statement_json(const Statement& statement) const {
    switch (statement.kind) {
      case StatementKind::forward: {
        OrderedJson json{{"do", "forward"},
                         {"engine", engine_name(statement.forward.engine)},
                         {"label", statement.forward.label}};
        for (const TaskIndex task : statement.forward.pre_user_backwards) {
          json["pre_user"].push_back(task_name(task));
        }
        return json;
      }
      case StatementKind::backward:
        return {{"do", "backward"},
                {"task", task_name(statement.task)},
                {"via", statement.is_through_engine ? "engine" : "tensor"},
                {"engine", engine_name(statement.engine)}};
      case StatementKind::step:
        return {{"do", "step"}, {"engine", engine_name(statement.engine)}};
      case StatementKind::zero_grad:
        return {{"do", "zero_grad"}, {"engine", engine_name(statement.engine)}};
    }
    return {};
  }

  const Scenario& scenario_;
};

}  // namespace

std::string scenario_text(const Scenario& scenario) {
  return ScenarioPrinter(scenario).text();
}

}  // namespace zeroproof

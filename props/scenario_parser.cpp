#include "props/scenario_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/nearest_name.h"

namespace zeroproof {
namespace {

// Leaves the recursive descent; parse() turns it into a Result.
struct Rejected {
  std::string text;
};

constexpr std::pair<std::string_view, NodeKind> kNodeKinds[] = {
    {"op", NodeKind::op},
    {"output_hook", NodeKind::output_hook},
    {"accumulate", NodeKind::accumulate},
    {"recompute", NodeKind::recompute},
    {"raise", NodeKind::raise},
};

}  // namespace

Result<Scenario> ScenarioParser::parse(const Json& document) {
  try {
    check_keys(document, "", {"schema", "id", "title", "source", "engines", "tasks", "program"});
    if (text_of(document, "schema", "") != "zeroproof.scenario/1") {
      reject("/schema", "must be \"zeroproof.scenario/1\"");
    }
    scenario_.id = text_of(document, "id", "");
    scenario_.title = text_of(document, "title", "");
    if (document.contains("source")) scenario_.source = text_of(document, "source", "");
    parse_engines(document.value("engines", Json::array()));
    parse_tasks(document.value("tasks", Json::object()));
    const Json program = document.value("program", Json::array());
    if (!program.is_array() || program.empty()) reject("/program", "must list statements");
    for (std::size_t at = 0; at < program.size(); ++at) {
      parse_statement(program[at], fmt::format("/program/{}", at));
    }
    return std::move(scenario_);
  } catch (const Rejected& rejected) {
    return fail(ErrorCode::usage, rejected.text);
  } catch (const Json::exception& error) {
    return fail(ErrorCode::usage,
                fmt::format("{}: a value of the wrong type: {}", where_, error.what()));
  }
}

void ScenarioParser::parse_engines(const Json& engines) {
  if (!engines.is_array() || engines.empty()) reject("/engines", "must list at least one engine");
  for (std::size_t at = 0; at < engines.size(); ++at) {
    const std::string pointer = fmt::format("/engines/{}", at);
    check_keys(engines[at], pointer, {"name", "params", "idle_leaf_modules", "requires_scale"});
    ProtocolEngineSpec engine;
    engine.name = text_of(engines[at], "name", pointer);
    engine.params = engines[at].value("params", std::vector<std::string>());
    engine.idle_leaf_modules = engines[at].value("idle_leaf_modules", 0);
    engine.requires_scale = engines[at].value("requires_scale", false);
    scenario_.program.engines.push_back(std::move(engine));
  }
}

// Names first: a checkpoint may name a task that stands below it.
void ScenarioParser::parse_tasks(const Json& tasks) {
  if (!tasks.is_object()) reject("/tasks", "must be an object of node lists");
  for (const auto& [name, nodes] : tasks.items()) {
    task_names_[name] = TaskIndex{static_cast<std::int32_t>(scenario_.program.tasks.size())};
    scenario_.program.tasks.push_back({.id = name});
  }
  for (const auto& [name, nodes] : tasks.items()) {
    GraphTaskProgram& task =
        scenario_.program.tasks[static_cast<std::size_t>(task_names_[name].value)];
    parse_nodes(task, nodes, fmt::format("/tasks/{}", name));
  }
  for (const auto& [name, index] : task_names_) {
    std::vector<TaskIndex> open;
    check_nesting(index, open);
  }
}

void ScenarioParser::parse_nodes(GraphTaskProgram& task, const Json& nodes,
                                 const std::string& pointer) {
  if (!nodes.is_array() || nodes.empty()) reject(pointer, "must list nodes, the root first");
  std::map<std::string, std::size_t> index;
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const std::string here = fmt::format("{}/{}", pointer, at);
    task.nodes.push_back(parse_node(nodes[at], here));
    if (!index.emplace(task.nodes.back().id, at).second) {
      reject(here + "/id", fmt::format("'{}' is used twice", task.nodes.back().id));
    }
  }
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    if (!nodes[at].contains("next")) continue;
    for (const std::string& next : nodes[at]["next"].get<std::vector<std::string>>()) {
      const auto found = index.find(next);
      if (found == index.end()) {
        reject(fmt::format("{}/{}/next", pointer, at), fmt::format("no node '{}' here", next));
      }
      task.nodes[at].next.push_back(found->second);
    }
  }
  check_acyclic(task, pointer);
}

ProtocolNode ScenarioParser::parse_node(const Json& node, const std::string& pointer) {
  check_keys(node, pointer, {"id", "kind", "seq", "next", "engine", "forward", "param", "task"});
  ProtocolNode result;
  result.id = text_of(node, "id", pointer);
  const std::string kind = node.value("kind", "op");
  const auto known = std::find_if(std::begin(kNodeKinds), std::end(kNodeKinds),
                                  [&](const auto& entry) { return entry.first == kind; });
  if (known == std::end(kNodeKinds)) {
    reject(pointer + "/kind", fmt::format("unknown node kind '{}'", kind));
  }
  result.kind = known->second;
  if (result.kind != NodeKind::accumulate) {
    if (!node.contains("seq")) reject(pointer, "needs \"seq\", its sequence number");
    result.sequence_nr = node["seq"].get<std::uint64_t>();
  }
  if (result.kind == NodeKind::output_hook || result.kind == NodeKind::accumulate) {
    result.engine = engine_of(node, pointer);
  }
  if (result.kind == NodeKind::output_hook) result.forward = text_of(node, "forward", pointer);
  if (result.kind == NodeKind::accumulate) result.param = text_of(node, "param", pointer);
  if (result.kind == NodeKind::recompute) {
    result.nested = task_of(node.value("task", Json()), pointer + "/task");
    if (node.contains("forward")) {
      result.recomputed = ForwardCall{.label = text_of(node, "forward", pointer),
                                      .engine = engine_of(node, pointer)};
    }
  }
  return result;
}

void ScenarioParser::parse_statement(const Json& statement, const std::string& pointer) {
  check_keys(statement, pointer, {"do", "label", "engine", "pre_user", "task", "via"});
  const std::string what = text_of(statement, "do", pointer);
  Statement result;
  result.engine = engine_of(statement, pointer);
  if (what == "forward") {
    result.kind = StatementKind::forward;
    result.forward = parse_forward(statement, pointer);
  } else if (what == "backward") {
    result.kind = StatementKind::backward;
    result.task = task_of(statement.value("task", Json()), pointer + "/task");
    const std::string via = text_of(statement, "via", pointer);
    if (via != "engine" && via != "tensor") {
      reject(pointer + "/via", fmt::format("'{}' is neither \"engine\" nor \"tensor\"", via));
    }
    result.is_through_engine = via == "engine";
  } else if (what == "step") {
    result.kind = StatementKind::step;
  } else if (what == "zero_grad") {
    result.kind = StatementKind::zero_grad;
  } else {
    reject(pointer + "/do", fmt::format("unknown statement '{}'", what));
  }
  scenario_.program.statements.push_back(std::move(result));
}

ForwardCall ScenarioParser::parse_forward(const Json& statement, const std::string& pointer) {
  ForwardCall forward{.label = text_of(statement, "label", pointer),
                      .engine = engine_of(statement, pointer)};
  const Json pre_user = statement.value("pre_user", Json::array());
  for (std::size_t at = 0; at < pre_user.size(); ++at) {
    forward.pre_user_backwards.push_back(
        task_of(pre_user[at], fmt::format("{}/pre_user/{}", pointer, at)));
  }
  return forward;
}

// Kahn's algorithm; every node must be reached from the root, node 0.
void ScenarioParser::check_acyclic(const GraphTaskProgram& task, const std::string& pointer) {
  std::vector<std::size_t> waiting(task.nodes.size(), 0);
  for (const ProtocolNode& node : task.nodes) {
    for (const std::size_t next : node.next) ++waiting[next];
  }
  std::vector<std::size_t> ready = {0};
  std::vector<bool> has_run(task.nodes.size(), false);
  while (!ready.empty() && waiting[0] == 0) {
    const std::size_t node = ready.back();
    ready.pop_back();
    has_run[node] = true;
    for (const std::size_t next : task.nodes[node].next) {
      if (--waiting[next] == 0) ready.push_back(next);
    }
  }
  const auto stuck = std::find(has_run.begin(), has_run.end(), false);
  if (stuck == has_run.end()) return;
  const auto at = static_cast<std::size_t>(stuck - has_run.begin());
  reject(fmt::format("{}/{}", pointer, at),
         fmt::format("node '{}' never runs: it lies on a cycle, or no path from the first node "
                     "leads to it",
                     task.nodes[at].id));
}

void ScenarioParser::check_nesting(TaskIndex task, std::vector<TaskIndex>& open) {
  const GraphTaskProgram& program = scenario_.program.task(task);
  if (std::find(open.begin(), open.end(), task) != open.end()) {
    reject("/tasks/" + program.id, "recomputes itself");
  }
  open.push_back(task);
  for (const ProtocolNode& node : program.nodes) {
    if (node.kind == NodeKind::recompute) check_nesting(node.nested, open);
  }
  open.pop_back();
}

// The first engine unless named.
EngineId ScenarioParser::engine_of(const Json& object, const std::string& pointer) {
  if (!object.contains("engine")) return EngineId{0};
  const std::string name = text_of(object, "engine", pointer);
  const auto& engines = scenario_.program.engines;
  for (std::size_t at = 0; at < engines.size(); ++at) {
    if (engines[at].name == name) return EngineId{static_cast<std::int32_t>(at)};
  }
  reject(pointer + "/engine", fmt::format("no engine '{}'", name));
}

TaskIndex ScenarioParser::task_of(const Json& value, const std::string& pointer) {
  if (!value.is_string()) reject(pointer, "must name a task");
  const auto found = task_names_.find(value.get<std::string>());
  if (found == task_names_.end()) {
    reject(pointer, fmt::format("no task '{}'", value.get<std::string>()));
  }
  return found->second;
}

std::string ScenarioParser::text_of(const Json& object, std::string_view key,
                                    const std::string& pointer) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) {
    reject(fmt::format("{}/{}", pointer, key), "must be a string");
  }
  return found->get<std::string>();
}

void ScenarioParser::check_keys(const Json& object, const std::string& pointer,
                                std::initializer_list<std::string_view> allowed) {
  if (!object.is_object()) reject(pointer.empty() ? "/" : pointer, "must be an object");
  for (const auto& [key, value] : object.items()) {
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    const std::vector<std::string_view> known(allowed);
    reject(fmt::format("{}/{}", pointer, key), "unknown key: " + did_you_mean(key, known));
  }
}

void ScenarioParser::reject(const std::string& pointer, const std::string& reason) {
  throw Rejected{fmt::format("{}: {}: {}", where_, pointer, reason)};
}

}  // namespace zeroproof

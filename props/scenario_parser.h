#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "props/scenario.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// Turns the JSON of one scenario into a program. One use per parser; the first error wins.
class ScenarioParser {
 public:
  using Json = nlohmann::json;

  explicit ScenarioParser(std::string_view where) : where_(where) {}

  Result<Scenario> parse(const Json& document);

 private:
  void parse_engines(const Json& engines);
  void parse_tasks(const Json& tasks);
  void parse_nodes(GraphTaskProgram& task, const Json& nodes, const std::string& pointer);
  ProtocolNode parse_node(const Json& node, const std::string& pointer);
  void parse_statement(const Json& statement, const std::string& pointer);
  ForwardCall parse_forward(const Json& statement, const std::string& pointer);
  void check_acyclic(const GraphTaskProgram& task, const std::string& pointer);
  void check_nesting(TaskIndex task, std::vector<TaskIndex>& open);

  EngineId engine_of(const Json& object, const std::string& pointer);
  TaskIndex task_of(const Json& value, const std::string& pointer);
  std::string text_of(const Json& object, std::string_view key, const std::string& pointer);
  void check_keys(const Json& object, const std::string& pointer,
                  std::initializer_list<std::string_view> allowed);
  [[noreturn]] void reject(const std::string& pointer, const std::string& reason);

  std::string where_;
  Scenario scenario_;
  std::map<std::string, TaskIndex> task_names_;
};

}  // namespace zeroproof

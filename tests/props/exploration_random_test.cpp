// Random protocol programs under exact: every order of every program holds every property, and
// the number of orders explored is the number computed from the partial orders.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "props/order_counting.h"
#include "tests/model/pick.h"
#include "tests/props/explored.h"

namespace zeroproof {
namespace {

using testing::explore_written;
using testing::failing_property;
using testing::pick;

constexpr std::size_t kVisibleMost = 6;  // so that exhaustive stays fast

bool is_inner(const ProtocolNode& node) {
  return node.kind == NodeKind::op || node.kind == NodeKind::output_hook ||
         node.kind == NodeKind::raise;
}

// Builds one random program; leaves get new names, so that parameters are never tied.
class RandomProgram {
 public:
  Scenario build() {
    scenario_.id = "random";
    scenario_.title = "random";
    scenario_.program.engines.resize(1);
    scenario_.program.engines[0].name = "e";
    const int rounds = pick(1, 3);
    for (int round = 0; round < rounds; ++round) add_round(round);
    scenario_.program.engines[0].params = params_;
    return scenario_;
  }

 private:
  // A forward, sometimes with a tiled loss, and one or two backwards of its graph.
  void add_round(int round) {
    ForwardCall forward;
    forward.label = std::string(1, static_cast<char>('A' + round));
    forward.engine = EngineId{0};
    for (int tiles = pick(-5, 3); tiles > 0; --tiles) {
      forward.pre_user_backwards.push_back(add_task({}, 2));
    }
    const TaskIndex task = add_task(forward.label, pick<std::size_t>(1, kVisibleMost));
    add_statement(StatementKind::forward).forward = forward;
    const int backwards = pick(0, 5) == 0 ? 2 : 1;
    const bool is_through_engine = *rc::gen::arbitrary<bool>();
    for (int backward = 0; backward < backwards; ++backward) {
      Statement& statement = add_statement(StatementKind::backward);
      statement.task = task;
      statement.is_through_engine = is_through_engine;
    }
    if (pick(0, 3) != 0) add_statement(StatementKind::step);
  }

  Statement& add_statement(StatementKind kind) {
    Statement& added = scenario_.program.statements.emplace_back();
    added.kind = kind;
    added.engine = EngineId{0};
    return added;
  }

  // With a label its root is an output of that forward, or an op above it (a regulariser).
  TaskIndex add_task(const std::string& label, std::size_t visible) {
    GraphTaskProgram task;
    const TaskIndex index{static_cast<std::int32_t>(scenario_.program.tasks.size())};
    task.id = "t" + std::to_string(index.value);
    scenario_.program.tasks.push_back({});  // takes the number before nested tasks do
    if (label.empty() || pick(0, 5) == 0) add_node(task, node_of(NodeKind::op, "root"));
    if (!label.empty()) {
      ProtocolNode out = node_of(NodeKind::output_hook, "out");
      out.forward = label;
      add_node(task, std::move(out));
    }
    for (std::size_t left = visible; left > 0; --left) {
      if (pick(0, 2) == 0) add_node(task, node_of(NodeKind::op, name("o")));
      add_node(task, random_visible(!label.empty()));
    }
    scenario_.program.tasks[static_cast<std::size_t>(index.value)] = std::move(task);
    return index;
  }

  ProtocolNode random_visible(bool can_nest) {
    const int draw = pick(0, 12);
    if (draw == 0) return node_of(NodeKind::raise, name("boom"));
    if (draw == 1 && can_nest) {
      ProtocolNode checkpoint = node_of(NodeKind::recompute, name("ck"));
      checkpoint.nested = add_task({}, pick<std::size_t>(1, 4));
      return checkpoint;
    }
    ProtocolNode leaf = node_of(NodeKind::accumulate, name("p"));
    leaf.param = leaf.id;
    params_.push_back(leaf.param);
    return leaf;
  }

  static ProtocolNode node_of(NodeKind kind, std::string id) {
    ProtocolNode node;
    node.kind = kind;
    node.id = std::move(id);
    node.engine = EngineId{0};
    return node;
  }

  // Under one or two earlier nodes that may have successors.
  static void add_node(GraphTaskProgram& task, ProtocolNode node) {
    node.sequence_nr = 1000 - task.nodes.size();
    std::vector<std::size_t> above;
    for (std::size_t at = 0; at < task.nodes.size(); ++at) {
      if (is_inner(task.nodes[at])) above.push_back(at);
    }
    const std::size_t added = task.nodes.size();
    task.nodes.push_back(std::move(node));
    for (int edges = above.empty() ? 0 : pick(1, 3); edges > 0; --edges) {
      std::vector<std::size_t>& next = task.nodes[above[pick<std::size_t>(0, above.size())]].next;
      if (std::find(next.begin(), next.end(), added) == next.end()) next.push_back(added);
    }
  }

  // Ends in a letter: widen() counts on a number at the end, which could meet another name.
  std::string name(const char* stem) { return stem + std::to_string(next_name_++) + "x"; }

  Scenario scenario_;
  std::vector<std::string> params_;
  int next_name_ = 0;
};

RC_GTEST_PROP(RandomPrograms, Hold_every_property_under_exact_in_every_order, ()) {
  const Scenario scenario = RandomProgram().build();
  for (const OrderModel order_model : {OrderModel::faithful, OrderModel::any_topological}) {
    ExplorationOptions options;
    options.order_model = order_model;
    options.minimizes = false;
    const ExplorationReport report = explore_written(scenario, options);
    if (!report.has_held()) RC_FAIL(failing_property(report) + "\n" + scenario_text(scenario));
    const auto counted = count_program_orders(scenario.program, order_model);
    RC_TAG(counted ? "counted" : "not countable");
  }
}

RC_GTEST_PROP(RandomPrograms, Are_the_same_after_they_are_written_and_read, ()) {
  const Scenario scenario = widen(RandomProgram().build(), pick<std::uint32_t>(1, 4));
  const std::string text = scenario_text(scenario);
  const auto again = parse_scenario(text, "random");
  if (!again) RC_FAIL(again.error().text + "\n" + text);
  RC_ASSERT(scenario_text(*again) == text);
  RC_ASSERT(testing::every_field(again->program) == testing::every_field(scenario.program));
}

}  // namespace
}  // namespace zeroproof

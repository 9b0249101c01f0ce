#include "props/scenario_reduction.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace zeroproof {
namespace {

// Tasks that some statement still runs, nested ones included.
void mark_used(const ProtocolProgram& program, TaskIndex index, std::set<TaskIndex>& used) {
  if (!used.insert(index).second) return;
  for (const ProtocolNode& node : program.task(index).nodes) {
    if (node.kind == NodeKind::recompute) mark_used(program, node.nested, used);
  }
}

std::set<TaskIndex> used_tasks(const ProtocolProgram& program) {
  std::set<TaskIndex> used;
  for (const Statement& statement : program.statements) {
    if (statement.kind == StatementKind::backward) mark_used(program, statement.task, used);
    for (const TaskIndex task : statement.forward.pre_user_backwards) {
      mark_used(program, task, used);
    }
  }
  return used;
}

void drop_unused_tasks(ProtocolProgram& program) {
  const std::set<TaskIndex> used = used_tasks(program);
  std::vector<TaskIndex> renumbered(program.tasks.size());
  std::vector<GraphTaskProgram> kept;
  for (std::size_t at = 0; at < program.tasks.size(); ++at) {
    if (!used.contains(TaskIndex{static_cast<std::int32_t>(at)})) continue;
    renumbered[at] = TaskIndex{static_cast<std::int32_t>(kept.size())};
    kept.push_back(std::move(program.tasks[at]));
  }
  const auto renumber = [&](TaskIndex& index) {
    if (!index.is_none()) index = renumbered[static_cast<std::size_t>(index.value)];
  };
  program.tasks = std::move(kept);
  for (GraphTaskProgram& task : program.tasks) {
    for (ProtocolNode& node : task.nodes) renumber(node.nested);
  }
  for (Statement& statement : program.statements) {
    renumber(statement.task);
    for (TaskIndex& task : statement.forward.pre_user_backwards) renumber(task);
  }
}

void drop_unused_params(ProtocolProgram& program) {
  std::set<std::pair<EngineId, std::string>> used;
  for (const GraphTaskProgram& task : program.tasks) {
    for (const ProtocolNode& node : task.nodes) used.emplace(node.engine, node.param);
  }
  for (std::size_t at = 0; at < program.engines.size(); ++at) {
    const EngineId id{static_cast<std::int32_t>(at)};
    std::erase_if(program.engines[at].params, [&](const std::string& param) {
      return !used.contains({id, param});
    });
  }
}

// Edges into `removed` lead to its successors instead. False when the graph would lose its root.
bool drop_node(GraphTaskProgram& task, std::size_t removed) {
  const std::vector<std::size_t> successors = task.nodes[removed].next;
  if (task.nodes.size() == 1) return false;
  if (removed == 0 && (successors.size() != 1 || successors.front() != 1)) return false;
  for (ProtocolNode& node : task.nodes) {
    std::vector<std::size_t> next;
    for (const std::size_t target : node.next) {
      if (target == removed) {
        next.insert(next.end(), successors.begin(), successors.end());
      } else {
        next.push_back(target);
      }
    }
    for (std::size_t& target : next) target -= target > removed ? 1 : 0;
    std::set<std::size_t> seen;
    std::erase_if(next, [&](std::size_t target) { return !seen.insert(target).second; });
    node.next = std::move(next);
  }
  task.nodes.erase(task.nodes.begin() + static_cast<std::ptrdiff_t>(removed));
  return true;
}

class Reducer {
 public:
  explicit Reducer(const Scenario& scenario) : scenario_(scenario) {}

  std::vector<Scenario> all() {
    drop_statements();
    drop_pre_user_backwards();
    drop_nodes();
    drop_idle_leaf_modules();
    return std::move(smaller_);
  }

 private:
  void add(Scenario smaller) {
    drop_unused_tasks(smaller.program);
    drop_unused_params(smaller.program);
    smaller_.push_back(std::move(smaller));
  }

  void drop_statements() {
    for (std::size_t at = scenario_.program.statements.size(); at-- > 0;) {
      if (scenario_.program.statements.size() == 1) return;
      Scenario smaller = scenario_;
      auto& statements = smaller.program.statements;
      statements.erase(statements.begin() + static_cast<std::ptrdiff_t>(at));
      add(std::move(smaller));
    }
  }

  void drop_pre_user_backwards() {
    for (std::size_t at = 0; at < scenario_.program.statements.size(); ++at) {
      const auto& tasks = scenario_.program.statements[at].forward.pre_user_backwards;
      for (std::size_t task = 0; task < tasks.size(); ++task) {
        Scenario smaller = scenario_;
        auto& kept = smaller.program.statements[at].forward.pre_user_backwards;
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(task));
        add(std::move(smaller));
      }
    }
  }

  void drop_nodes() {
    for (std::size_t task = 0; task < scenario_.program.tasks.size(); ++task) {
      for (std::size_t node = 0; node < scenario_.program.tasks[task].nodes.size(); ++node) {
        Scenario smaller = scenario_;
        if (drop_node(smaller.program.tasks[task], node)) add(std::move(smaller));
      }
    }
  }

  void drop_idle_leaf_modules() {
    for (std::size_t at = 0; at < scenario_.program.engines.size(); ++at) {
      if (scenario_.program.engines[at].idle_leaf_modules == 0) continue;
      Scenario smaller = scenario_;
      --smaller.program.engines[at].idle_leaf_modules;
      add(std::move(smaller));
    }
  }

  const Scenario& scenario_;
  std::vector<Scenario> smaller_;
};

}  // namespace

std::vector<Scenario> smaller_scenarios(const Scenario& scenario) {
  return Reducer(scenario).all();
}

}  // namespace zeroproof

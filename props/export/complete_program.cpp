#include "props/export/complete_program.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace zeroproof {
namespace {

using ForwardKey = std::pair<EngineId, std::string>;

// The forwards that somebody else calls: a checkpoint, when it recomputes.
std::set<ForwardKey> recomputed_forwards(const ProtocolProgram& program) {
  std::set<ForwardKey> found;
  for (const GraphTaskProgram& task : program.tasks)
    for (const ProtocolNode& node : task.nodes)
      if (node.recomputed) found.emplace(node.recomputed->engine, node.recomputed->label);
  return found;
}

Statement forward_statement(const ForwardKey& key) {
  Statement statement{.kind = StatementKind::forward};
  statement.forward.engine = key.first;
  statement.forward.label = key.second;
  return statement;
}

void add_steps(ProtocolProgram& program, std::vector<Statement>& statements) {
  const bool has_step = !statements.empty() && statements.back().kind == StatementKind::step;
  if (has_step) return;
  for (std::size_t at = 0; at < program.engines.size(); ++at) {
    Statement step{.kind = StatementKind::step};
    step.engine = EngineId{static_cast<std::int32_t>(at)};
    statements.push_back(std::move(step));
  }
}

}  // namespace

ProtocolProgram complete_program(ProtocolProgram program) {
  std::set<ForwardKey> known = recomputed_forwards(program);
  std::vector<Statement> statements;
  for (Statement& statement : program.statements) {
    if (statement.kind == StatementKind::forward)
      known.emplace(statement.forward.engine, statement.forward.label);
    if (statement.kind == StatementKind::backward)
      for (const ProtocolNode& node : program.task(statement.task).nodes)
        if (node.kind == NodeKind::output_hook && known.emplace(node.engine, node.forward).second)
          statements.push_back(forward_statement({node.engine, node.forward}));
    statements.push_back(std::move(statement));
  }
  add_steps(program, statements);
  program.statements = std::move(statements);
  return program;
}

}  // namespace zeroproof

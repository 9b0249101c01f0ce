#include "props/export/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "props/export/model_class.h"
#include "props/export/name_scope.h"

namespace zeroproof {
namespace {

class ProgramWriter {
 public:
  explicit ProgramWriter(const ProtocolProgram& program)
      : program_(program), outputs_(forward_outputs(program)), signatures_(program) {}

  Result<std::string> write() {
    text_ = "def PROGRAM(run):\n";
    std::string names;
    for (std::size_t at = 0; at < program_.engines.size(); ++at)
      names += engine(EngineId{static_cast<std::int32_t>(at)}) + ", ";
    line(1, names.substr(0, names.size() - 1) + " = run.engines");
    for (std::size_t at = 0; at < program_.statements.size(); ++at) {
      auto made = write_statement(program_.statements[at], at);
      if (!made) return tl::unexpected(made.error());
    }
    return text_ + "\n\n";
  }

 private:
  void line(int depth, const std::string& text) {
    text_ += std::string(static_cast<std::size_t>(depth) * 4, ' ') + text + "\n";
  }

  std::string engine(EngineId id) {
    const std::string& name = program_.engines[static_cast<std::size_t>(id.value)].name;
    return scope_.name("engine " + name, name);
  }

  std::string forward_variable(EngineId id, const std::string& label) {
    return scope_.name(fmt::format("forward {} {}", id.value, label), "out_" + label);
  }

  Result<void> write_statement(const Statement& statement, std::size_t at) {
    const std::string number = fmt::format("line {}: ", at + 1);
    switch (statement.kind) {
      case StatementKind::forward:
        write_forward(statement.forward, number);
        return {};
      case StatementKind::backward:
        return write_backward(statement, at, number);
      case StatementKind::step:
        line(1, fmt::format("run.step({}, {})",
                            python_string(number + engine(statement.engine) + ".step()"),
                            engine(statement.engine)));
        return {};
      case StatementKind::zero_grad:
        line(1, fmt::format("with run.statement({}):",
                            python_string(number + engine(statement.engine) + ".zero_grad()")));
        line(2, engine(statement.engine) + ".zero_grad()");
        return {};
    }
    return {};
  }

  // A forward whose outputs no graph names runs again inside a checkpoint: the checkpoint calls it.
  bool is_called_by_checkpoint(const ForwardCall& forward) const {
    const bool is_named = std::any_of(outputs_.begin(), outputs_.end(), [&](const auto& one) {
      return one.label == forward.label && one.engine == forward.engine;
    });
    if (is_named) return false;
    for (const GraphTaskProgram& task : program_.tasks)
      for (const ProtocolNode& node : task.nodes)
        if (node.recomputed && node.recomputed->engine == forward.engine) return true;
    return false;
  }

  void write_forward(const ForwardCall& forward, const std::string& number) {
    if (is_called_by_checkpoint(forward)) return;
    const std::string variable = forward_variable(forward.engine, forward.label);
    const std::string call =
        fmt::format("{}(run.data({}), {})", engine(forward.engine), python_string(forward.label),
                    python_string(label_name(forward.label)));
    line(1, variable + " = None");
    line(1, fmt::format("with run.statement({}):",
                        python_string(number + "forward " + forward.label)));
    line(2, variable + " = " + call);
  }

  // As in the module's class.
  static std::string label_name(const std::string& label) { return NameScope().name(label, label); }

  std::string output_value(NodeRef hook) {
    const int wanted = signatures_.of(hook);
    for (const ForwardOutputs& outputs : outputs_)
      for (std::size_t at = 0; at < outputs.hooks.size(); ++at) {
        if (signatures_.of(outputs.hooks[at]) != wanted) continue;
        const std::string variable = forward_variable(outputs.engine, outputs.label);
        return outputs.hooks.size() == 1 ? variable : fmt::format("{}[{}]", variable, at);
      }
    return {};
  }

  PythonPlace user_place() {
    return {.layer = [this](const ProtocolNode& leaf) -> Result<std::string> {
              return fmt::format("{}.layers[{}]", engine(leaf.engine), python_string(leaf.param));
            },
            .output = [this](NodeRef hook) { return output_value(hook); },
            .recomputed = [this](const ProtocolNode& node) -> Result<std::string> {
              return scope_.name(fmt::format("segment {}", node.nested.value),
                                 program_.task(node.nested).id);
            }};
  }

  // `def NAME(x)`: the graph of one task as the user's code makes it.
  Result<void> write_function(const std::string& name, TaskIndex task,
                              const std::string& argument) {
    for (const ProtocolNode* node : recomputes_of(task)) {
      auto made = write_segment(*node);
      if (!made) return made;
    }
    const PythonPlace place = user_place();
    const auto body = python_body(program_, {{task, 0}}, place);
    if (!body) return tl::unexpected(body.error());
    line(1, fmt::format("def {}({}):", name, argument));
    if (argument.empty())
      line(2, fmt::format("x = run.data({})", python_string("loss of " + program_.task(task).id)));
    for (const std::string& one : body->lines) line(2, one);
    line(2, "return " + body->values.front());
    return {};
  }

  // The recomputes that lie above the outputs: in the user's code.
  std::vector<const ProtocolNode*> recomputes_of(TaskIndex task) const {
    std::vector<const ProtocolNode*> found;
    std::set<std::size_t> seen;
    std::vector<std::size_t> open = {0};
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      const ProtocolNode& node = program_.task(task).nodes[at];
      if (!seen.insert(at).second || node.kind == NodeKind::output_hook) continue;
      if (node.kind == NodeKind::recompute) found.push_back(&node);
      open.insert(open.end(), node.next.begin(), node.next.end());
    }
    return found;
  }

  Result<void> write_segment(const ProtocolNode& recompute) {
    const TaskIndex task = recompute.nested;
    const std::string name =
        scope_.name(fmt::format("segment {}", task.value), program_.task(task).id);
    if (!written_.insert(task).second) return {};
    if (!recompute.recomputed) return write_function(name, task, "x");
    const ForwardCall& again = *recompute.recomputed;
    line(1, fmt::format("def {}(x):", name));
    line(2, fmt::format("{} = {}(x, {})", forward_variable(again.engine, again.label),
                        engine(again.engine), python_string(label_name(again.label))));
    const PythonPlace place = user_place();
    const auto body = python_body(program_, {{task, 0}}, place);
    if (!body) return tl::unexpected(body.error());
    for (const std::string& one : body->lines) line(2, one);
    line(2, "return " + body->values.front());
    return {};
  }

  // The forwards that the graph of a task goes through.
  std::set<std::string> forwards_of(TaskIndex task) const {
    std::set<std::string> labels;
    for (const ProtocolNode& node : program_.task(task).nodes)
      if (node.kind == NodeKind::output_hook)
        labels.insert(fmt::format("{} {}", node.engine.value, node.forward));
    return labels;
  }

  // A later backward goes through the same forward: autograd must keep the graph.
  bool is_retained(std::size_t at) const {
    const auto mine = forwards_of(program_.statements[at].task);
    for (std::size_t later = at + 1; later < program_.statements.size(); ++later) {
      const Statement& statement = program_.statements[later];
      if (statement.kind != StatementKind::backward) continue;
      for (const std::string& label : forwards_of(statement.task))
        if (mine.contains(label)) return true;
    }
    return false;
  }

  Result<void> write_backward(const Statement& statement, std::size_t at,
                              const std::string& number) {
    std::string loss = "lambda: ";
    const ProtocolNode& root = program_.task(statement.task).nodes.front();
    if (root.kind == NodeKind::output_hook) {
      loss += output_value({statement.task, 0});
    } else {
      const std::string name = fmt::format("loss_{}", at + 1);
      auto made = write_function(name, statement.task, "");
      if (!made) return made;
      loss = name;
    }
    const std::string words = statement.is_through_engine
                                  ? engine(statement.engine) + ".backward(loss)"
                                  : std::string("loss.backward()");
    line(1, fmt::format("run.backward({}, {}, {}, retain_graph={}, through_engine={})",
                        python_string(number + words), engine(statement.engine), loss,
                        is_retained(at) ? "True" : "False",
                        statement.is_through_engine ? "True" : "False"));
    return {};
  }

  const ProtocolProgram& program_;
  std::vector<ForwardOutputs> outputs_;
  GraphSignatures signatures_;
  NameScope scope_;
  std::set<TaskIndex> written_;
  std::string text_;
};

}  // namespace

Result<std::string> program_text(const ProtocolProgram& program) {
  return ProgramWriter(program).write();
}

}  // namespace zeroproof

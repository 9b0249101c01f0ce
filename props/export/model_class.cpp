#include "props/export/model_class.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "props/export/name_scope.h"

namespace zeroproof {
namespace {

class ClassWriter {
 public:
  ClassWriter(const ProtocolProgram& program, EngineId engine, const std::string& class_name)
      : program_(program), engine_(engine) {
    text_ = fmt::format("class {}(torch.nn.Module):\n", class_name);
  }

  Result<std::string> write() {
    write_constructor();
    std::set<std::string> written;
    for (const ForwardOutputs& outputs : forward_outputs(program_)) {
      if (outputs.engine != engine_) continue;
      written.insert(outputs.label);
      if (auto made = write_forward(outputs); !made) return tl::unexpected(made.error());
    }
    for (const Statement& statement : program_.statements)
      if (statement.kind == StatementKind::forward && statement.forward.engine == engine_ &&
          written.insert(statement.forward.label).second)
        if (auto made = write_forward({engine_, statement.forward.label, {}}); !made)
          return tl::unexpected(made.error());
    if (auto made = write_segments(); !made) return tl::unexpected(made.error());
    text_ +=
        "    def forward(self, x, label):\n"
        "        return getattr(self, \"forward_\" + label)(x)\n";
    return std::move(text_);
  }

 private:
  const ProtocolEngineSpec& spec() const {
    return program_.engines[static_cast<std::size_t>(engine_.value)];
  }

  void write_constructor() {
    text_ += "    def __init__(self):\n        super().__init__()\n";
    for (const std::string& param : spec().params)
      text_ += fmt::format("        self.{} = Layer({})\n", layer_name(spec(), param),
                           python_string(param));
    for (int leaf = 0; leaf < spec().idle_leaf_modules; ++leaf)
      text_ +=
          fmt::format("        self.idle_leaf_{} = torch.nn.Linear(2, 2)  # never called\n", leaf);
    text_ += "\n";
  }

  PythonPlace place() {
    return {.layer = [this](const ProtocolNode& leaf) -> Result<std::string> {
              if (leaf.engine != engine_)
                return fail(ErrorCode::usage,
                            fmt::format("export: parameter '{}' of another engine lies below an "
                                        "output of engine '{}'; a module cannot call it",
                                        leaf.param, spec().name));
              return "self." + layer_name(spec(), leaf.param);
            },
            .output = [](NodeRef) { return std::string(); },
            .recomputed = [this](const ProtocolNode& node) -> Result<std::string> {
              return "self." + segment(node.nested);
            }};
  }

  std::string segment(TaskIndex task) {
    if (std::find(segments_.begin(), segments_.end(), task) == segments_.end())
      segments_.push_back(task);
    return scope_.name(std::to_string(task.value), "segment_" + program_.task(task).id);
  }

  std::string all_layers() const {
    std::string sum;
    for (const std::string& param : spec().params)
      sum += fmt::format("{}self.{}(x).sum()", sum.empty() ? "" : " + ", layer_name(spec(), param));
    return sum;
  }

  std::vector<TaskIndex> tiles_of(const std::string& label) const {
    for (const Statement& statement : program_.statements)
      if (statement.kind == StatementKind::forward && statement.forward.label == label)
        return statement.forward.pre_user_backwards;
    return {};
  }

  Result<void> write_forward(const ForwardOutputs& outputs) {
    std::vector<std::string> lines;
    for (const TaskIndex tile : tiles_of(outputs.label))
      lines.push_back(
          fmt::format("Tile.apply(self.{}, x)  # a backward inside the forward", segment(tile)));
    const PythonPlace here = place();
    auto body = python_body(program_, outputs.hooks, here);
    if (!body) return tl::unexpected(body.error());
    lines.insert(lines.end(), body->lines.begin(), body->lines.end());
    if (body->values.empty())  // the model does not use what this forward returns
      lines.push_back(fmt::format("return {}", all_layers()));
    else
      lines.push_back(fmt::format("return {}", fmt::join(body->values, ", ")));
    write_method(fmt::format("forward_{}", forward_name(outputs.label)), lines);
    return {};
  }

  Result<void> write_segments() {
    for (std::size_t at = 0; at < segments_.size(); ++at) {  // grows while it is written
      const PythonPlace here = place();
      auto body = python_body(program_, {{segments_[at], 0}}, here);
      if (!body) return tl::unexpected(body.error());
      body->lines.push_back("return " + body->values.front());
      write_method(segment(segments_[at]), body->lines);
    }
    return {};
  }

  void write_method(const std::string& name, const std::vector<std::string>& lines) {
    text_ += fmt::format("    def {}(self, x):\n", name);
    for (const std::string& line : lines) text_ += fmt::format("        {}\n", line);
    text_ += "\n";
  }

  static std::string forward_name(const std::string& label) {
    return NameScope().name(label, label);
  }

  const ProtocolProgram& program_;
  EngineId engine_;
  std::string text_;
  std::vector<TaskIndex> segments_;
  NameScope scope_;
};

}  // namespace

std::vector<ForwardOutputs> forward_outputs(const ProtocolProgram& program) {
  std::vector<ForwardOutputs> all;
  GraphSignatures signatures(program);
  std::set<int> known;
  for (std::size_t task = 0; task < program.tasks.size(); ++task) {
    const TaskIndex index{static_cast<std::int32_t>(task)};
    for (std::size_t node = 0; node < program.tasks[task].nodes.size(); ++node) {
      const ProtocolNode& hook = program.tasks[task].nodes[node];
      if (hook.kind != NodeKind::output_hook || !known.insert(signatures.of({index, node})).second)
        continue;
      auto same = std::find_if(all.begin(), all.end(), [&](const ForwardOutputs& one) {
        return one.label == hook.forward && one.engine == hook.engine;
      });
      if (same == all.end()) same = all.insert(all.end(), {hook.engine, hook.forward, {}});
      same->hooks.push_back({index, node});
    }
  }
  return all;
}

std::string layer_name(const ProtocolEngineSpec& engine, const std::string& param) {
  NameScope scope;
  for (const std::string& one : engine.params) scope.name(one, "layer_" + one);
  return scope.name(param, "layer_" + param);
}

Result<std::string> model_class(const ProtocolProgram& program, EngineId engine,
                                const std::string& class_name) {
  return ClassWriter(program, engine, class_name).write();
}

}  // namespace zeroproof

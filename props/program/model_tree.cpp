#include "props/program/model_tree.h"

namespace zeroproof::program {
namespace {

void add_nodes(const ModuleList& modules, std::vector<const Module*>& nodes) {
  for (const Module& module : modules) {
    nodes.push_back(&module);
    if (const ModuleList* const body = body_of(module)) add_nodes(*body, nodes);
  }
}

}  // namespace

const ModuleList* body_of(const Module& module) {
  const auto body = [](const auto& kind) -> const ModuleList* {
    if constexpr (requires { kind.body; }) return &kind.body;
    return nullptr;
  };
  return std::visit(body, module.kind);
}

std::vector<const Module*> nodes_of(const Model& model) {
  std::vector<const Module*> nodes;
  add_nodes(model.body, nodes);
  for (const ModuleList& head : model.heads) add_nodes(head, nodes);
  return nodes;
}

const Module* find_module(const Model& model, const std::string& name) {
  for (const Module* const node : nodes_of(model))
    if (node->name == name) return node;
  return nullptr;
}

}  // namespace zeroproof::program

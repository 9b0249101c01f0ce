#include "props/export/python_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "props/export/name_scope.h"

namespace zeroproof {
namespace {

const ProtocolNode& node_of(const ProtocolProgram& program, NodeRef ref) {
  return program.task(ref.task).nodes[ref.node];
}

class BodyWriter {
 public:
  BodyWriter(const ProtocolProgram& program, const PythonPlace& place)
      : program_(program), place_(place), signatures_(program) {}

  Result<PythonBody> write(const std::vector<NodeRef>& roots) {
    for (const NodeRef root : roots) collect(root);
    std::vector<const Item*> order;
    for (const auto& [signature, item] : items_) order.push_back(&item);
    if (auto made = write_in_creation_order(order); !made) return tl::unexpected(made.error());
    PythonBody body{std::move(lines_), {}};
    for (const NodeRef root : roots) {
      auto value = value_of(root);
      if (!value) return tl::unexpected(value.error());
      body.values.push_back(std::move(*value));
    }
    return body;
  }

 private:
  struct Item {
    NodeRef ref;
    const ProtocolNode* node = nullptr;
    bool is_written = false;
  };

  int signature(NodeRef ref) { return signatures_.of(ref); }

  // Whether the node is a statement of its own here.
  bool is_item(NodeRef ref) const {
    const ProtocolNode& node = node_of(program_, ref);
    if (node.kind == NodeKind::accumulate) return false;
    return node.kind != NodeKind::output_hook || place_.output(ref).empty();
  }

  void collect(NodeRef ref) {
    if (!is_item(ref) || items_.contains(signature(ref))) return;
    items_[signature(ref)] = Item{ref, &node_of(program_, ref), false};
    for (const std::size_t next : node_of(program_, ref).next) collect({ref.task, next});
  }

  // The lowest sequence number of those whose inputs exist, again and again.
  Result<void> write_in_creation_order(std::vector<const Item*> order) {
    std::stable_sort(order.begin(), order.end(), [](const Item* a, const Item* b) {
      return a->node->sequence_nr < b->node->sequence_nr;
    });
    for (std::size_t written = 0; written < order.size(); ++written) {
      const auto next = std::find_if(order.begin(), order.end(), [&](const Item* item) {
        return !items_[signature(item->ref)].is_written && has_inputs(*item);
      });
      Item& item = items_[signature((*next)->ref)];
      auto text = expression(item.ref);
      if (!text) return tl::unexpected(text.error());
      lines_.push_back(fmt::format("{} = {}", variable(item.ref), *text));
      item.is_written = true;
    }
    return {};
  }

  bool has_inputs(const Item& item) {
    return std::all_of(item.node->next.begin(), item.node->next.end(), [&](std::size_t next) {
      const NodeRef ref{item.ref.task, next};
      return !is_item(ref) || items_[signature(ref)].is_written;
    });
  }

  std::string variable(NodeRef ref) {
    return scope_.name(std::to_string(signature(ref)), node_of(program_, ref).id);
  }

  Result<std::string> value_of(NodeRef ref) {
    const ProtocolNode& node = node_of(program_, ref);
    if (node.kind == NodeKind::accumulate) {
      auto layer = place_.layer(node);
      if (!layer) return layer;
      return fmt::format("{}(x)", *layer);
    }
    return is_item(ref) ? variable(ref) : place_.output(ref);
  }

  Result<std::string> expression(NodeRef ref) {
    const ProtocolNode& node = node_of(program_, ref);
    std::string inputs;
    std::vector<const ProtocolNode*> leaves;
    for (const std::size_t next : node.next) {
      const ProtocolNode& child = node_of(program_, {ref.task, next});
      if (child.kind == NodeKind::accumulate) {
        leaves.push_back(&child);
        continue;
      }
      auto value = value_of({ref.task, next});
      if (!value) return value;
      inputs += fmt::format("{}{}", inputs.empty() ? "" : " + ", *value);
    }
    if (inputs.empty()) inputs.push_back('x');
    auto layered = through_layers(inputs, leaves);
    if (!layered) return layered;
    return dressed(node, *layered);
  }

  Result<std::string> through_layers(const std::string& inputs,
                                     const std::vector<const ProtocolNode*>& leaves) {
    std::string text;
    for (const ProtocolNode* leaf : leaves) {
      auto layer = place_.layer(*leaf);
      if (!layer) return layer;
      text += fmt::format("{}{}({})", text.empty() ? "" : " + ", *layer, inputs);
    }
    return text.empty() ? inputs : text;
  }

  Result<std::string> dressed(const ProtocolNode& node, const std::string& value) {
    switch (node.kind) {
      case NodeKind::output_hook:
        return fmt::format("({}).sum()", value);
      case NodeKind::raise:
        return fmt::format("Boom.apply({})", value);
      case NodeKind::recompute: {
        auto function = place_.recomputed(node);
        if (!function) return function;
        return fmt::format("checkpoint({}, {}, use_reentrant=True)", *function, value);
      }
      case NodeKind::op:
      case NodeKind::accumulate:
        break;
    }
    return value.find_first_of(" (") == std::string::npos ? value + " * 1" : value;
  }

  const ProtocolProgram& program_;
  const PythonPlace& place_;
  GraphSignatures signatures_;
  std::map<int, Item> items_;
  std::vector<std::string> lines_;
  NameScope scope_;
};

}  // namespace

int GraphSignatures::of(NodeRef ref) {
  const auto known = known_.find(ref);
  if (known != known_.end()) return known->second;
  const ProtocolNode& node = node_of(*program_, ref);
  std::string text = fmt::format("{}:{}:{}:{}:{}:{}(", node.id, static_cast<int>(node.kind),
                                 node.param, node.engine.value, node.forward, node.nested.value);
  for (const std::size_t next : node.next) text += fmt::format("{},", of({ref.task, next}));
  const int number = static_cast<int>(numbers_.size());
  return known_[ref] = numbers_.emplace(std::move(text), number).first->second;
}

Result<PythonBody> python_body(const ProtocolProgram& program, const std::vector<NodeRef>& roots,
                               const PythonPlace& place) {
  return BodyWriter(program, place).write(roots);
}

}  // namespace zeroproof

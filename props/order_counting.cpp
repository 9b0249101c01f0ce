#include "props/order_counting.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "model/linear_extensions.h"

namespace zeroproof {
namespace {

// Every node that some path leads to from `from`.
std::vector<bool> reachable(const GraphTaskProgram& task, std::size_t from) {
  std::vector<bool> is_reached(task.nodes.size(), false);
  std::vector<std::size_t> open(task.nodes[from].next);
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (is_reached[node]) continue;
    is_reached[node] = true;
    open.insert(open.end(), task.nodes[node].next.begin(), task.nodes[node].next.end());
  }
  return is_reached;
}

class OrderCounter {
 public:
  explicit OrderCounter(const ProtocolProgram& program) : program_(program) {}

  Result<OrderCount> count_task(TaskIndex index) {
    const GraphTaskProgram& task = program_.task(index);
    std::vector<std::size_t> visible;
    for (std::size_t node = 0; node < task.nodes.size(); ++node) {
      if (task.nodes[node].kind != NodeKind::op) visible.push_back(node);
    }
    if (visible.size() > Poset::kMaxElements) {
      return fail(ErrorCode::usage,
                  fmt::format("graph task '{}' has {} visible nodes, more than {}", task.id,
                              visible.size(), Poset::kMaxElements));
    }
    std::vector<ElementSet> predecessors(visible.size(), 0);
    ElementSet stops = 0;
    for (std::size_t before = 0; before < visible.size(); ++before) {
      const std::vector<bool> is_after = reachable(task, visible[before]);
      for (std::size_t after = 0; after < visible.size(); ++after) {
        if (is_after[visible[after]]) predecessors[after] |= set_of(before);
      }
      if (task.nodes[visible[before]].kind == NodeKind::raise) stops |= set_of(before);
    }
    auto poset = Poset::make(std::move(predecessors));
    if (!poset) return tl::unexpected(poset.error());
    auto orders = count_orders(*poset, stops);
    if (!orders) return orders;
    return with_nested(task, *orders, stops != 0);
  }

  Result<OrderCount> count_forward(const ForwardCall& forward) {
    OrderCount total(1);
    for (const TaskIndex task : forward.pre_user_backwards) {
      auto orders = count_task(task);
      if (!orders) return orders;
      total *= *orders;
      if (raises(task)) break;  // the forward ends there
    }
    return total;
  }

 private:
  // Every node runs, so a node that raises is always met, unless another one raises first.
  bool raises(TaskIndex index) const {
    for (const ProtocolNode& node : program_.task(index).nodes) {
      if (node.kind == NodeKind::raise) return true;
      if (node.kind == NodeKind::recompute && raises(node.nested)) return true;
    }
    return false;
  }

  // A nested task runs to its end inside its node, so its orders multiply.
  Result<OrderCount> with_nested(const GraphTaskProgram& task, OrderCount orders, bool is_stopped) {
    for (const ProtocolNode& node : task.nodes) {
      if (node.kind != NodeKind::recompute) continue;
      if (is_stopped || raises(node.nested)) {
        return fail(ErrorCode::usage,
                    fmt::format("graph task '{}' recomputes, and it or the recomputed one raises",
                                task.id));
      }
      auto nested = count_task(node.nested);
      if (!nested) return nested;
      orders *= *nested;
      if (!node.recomputed) continue;
      auto forward = count_forward(*node.recomputed);
      if (!forward) return forward;
      orders *= *forward;
    }
    return orders;
  }

  const ProtocolProgram& program_;
};

}  // namespace

Result<OrderCount> count_program_orders(const ProtocolProgram& program, OrderModel order_model) {
  OrderCount total(1);
  if (order_model == OrderModel::faithful) return total;
  OrderCounter counter(program);
  for (const Statement& statement : program.statements) {
    Result<OrderCount> orders(OrderCount(1));
    if (statement.kind == StatementKind::backward) orders = counter.count_task(statement.task);
    if (statement.kind == StatementKind::forward) orders = counter.count_forward(statement.forward);
    if (!orders) return orders;
    total *= *orders;
  }
  return total;
}

}  // namespace zeroproof

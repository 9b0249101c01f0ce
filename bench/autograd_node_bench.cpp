// What running one graph node costs apart from its arithmetic: PyTorch's figure stands in
// docs/spec/performance.md 4.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "model/accumulate_grad.h"
#include "model/cpu_ops.h"
#include "model/op.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

// A node without arithmetic: what arrives goes on to every edge.
class PassOn final : public Node {
 public:
  explicit PassOn(Autograd& autograd) : Node(autograd, autograd.take_sequence_nr()) {}
  std::string_view name() const override { return "PassOnBackward"; }
  TensorList apply(TensorList grads) override {
    if (grads.size() < next_edges().size()) grads.resize(next_edges().size(), grads[0]);
    return grads;
  }
};

Tensor leaf() {
  Tensor tensor = Tensor::full({}, 1.0);
  tensor.set_requires_grad(true);
  return tensor;
}

Tensor pass_on(Autograd& ag, const Tensor& value, const std::vector<Tensor>& inputs) {
  const auto node = std::make_shared<PassOn>(ag);
  for (const Tensor& input : inputs) node->add_next_edge(gradient_edge(ag, input));
  return with_grad_fn(value.detach(), node);
}

void run_backwards(benchmark::State& state, Autograd& ag, const Tensor& root, std::int64_t nodes) {
  for (auto _ : state) ag.backward(root, {.retain_graph = true});
  state.SetItemsProcessed(state.iterations() * nodes);
}

// One ready node at a time: a network without branches.
void autograd_node_chain(benchmark::State& state) {
  const CpuOps ops;
  Autograd ag(ops);
  const Tensor start = leaf();
  Tensor end = start;
  for (std::int64_t i = 0; i < state.range(0); ++i) end = pass_on(ag, start, {end});
  run_backwards(state, ag, end, state.range(0));
}
BENCHMARK(autograd_node_chain)->Arg(147)->Arg(1024)->Arg(65536);

// As a chain of linear layers leaves it: every second node has a leaf of its own.
void autograd_node_layers(benchmark::State& state) {
  const CpuOps ops;
  Autograd ag(ops);
  const Tensor start = leaf();
  std::vector<Tensor> leaves;
  Tensor end = start;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    leaves.push_back(leaf());
    end = pass_on(ag, start, {end, leaves.back()});
  }
  run_backwards(state, ag, end, 2 * state.range(0));
}
BENCHMARK(autograd_node_layers)->Arg(147)->Arg(1024)->Arg(8192);

// The same chain of real operations on one number, and their arithmetic alone.
void autograd_node_neg(benchmark::State& state) {
  const CpuOps ops;
  Autograd ag(ops);
  Tensor end = leaf();
  for (std::int64_t i = 0; i < state.range(0); ++i) end = neg(ag, end);
  run_backwards(state, ag, end, state.range(0));
}
BENCHMARK(autograd_node_neg)->Arg(1024);

void autograd_neg_arithmetic(benchmark::State& state) {
  const CpuOps ops;
  Tensor value = Tensor::full({}, 1.0);
  for (auto _ : state) value = ops.unary(UnaryOp::neg, value);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(autograd_neg_arithmetic);

}  // namespace
}  // namespace zeroproof

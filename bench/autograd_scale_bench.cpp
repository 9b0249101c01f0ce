#include <benchmark/benchmark.h>

#include "model/cpu_ops.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

Tensor one_element_leaf() {
  Tensor tensor = Tensor::full({1}, 1.0);
  tensor.set_requires_grad(true);
  return tensor;
}

// Leaves that one node makes ready together; the graph is kept.
void accumulate_ready_leaves(benchmark::State& state) {
  const CpuOps ops;
  Autograd ag(ops);
  TensorList leaves;
  for (std::int64_t i = 0; i < state.range(0); ++i) leaves.push_back(one_element_leaf());
  const Tensor loss = sum(ag, cat(ag, leaves));
  for (auto _ : state) ag.backward(loss, {.retain_graph = true});
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(accumulate_ready_leaves)->Arg(12'500)->Arg(25'000)->Arg(50'000)->Arg(100'000);

// A chain is built, run and freed.
void run_chain(benchmark::State& state) {
  const CpuOps ops;
  Autograd ag(ops);
  const Tensor x = one_element_leaf();
  for (auto _ : state) {
    Tensor y = x;
    for (std::int64_t i = 0; i < state.range(0); ++i) y = neg(ag, y);
    ag.backward(y);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(run_chain)->RangeMultiplier(10)->Range(10'000, 1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zeroproof

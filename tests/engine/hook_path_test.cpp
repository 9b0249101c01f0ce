// What a gradient hook of the engine costs in allocations, from its first to its last.
#include <gtest/gtest.h>

#include "engine/engine_core.h"
#include "model/cpu_ops.h"
#include "tests/engine/heap_count.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kWidth = 4;

class ManyParameters final : public nn::Module {
 public:
  explicit ManyParameters(int count) {
    for (int i = 0; i < count; ++i) {
      Tensor parameter = Tensor::full({kWidth}, 1.0, DType::float32);
      parameter.set_requires_grad(true);
      register_parameter("p" + std::to_string(i), parameter);
    }
  }

 protected:
  TensorList forward(Autograd&, const TensorList& inputs) const override { return inputs; }
};

// The hooks of all parameters inside one graph task, as AccumulateGrad would call them; what the
// loop itself allocates.
std::uint64_t allocations_of_hooks(Engine::Core& core) {
  Autograd& autograd = core.context().autograd;
  std::uint64_t allocations = 0;
  Tensor leaf = Tensor::full({}, 1.0, DType::float32);
  leaf.set_requires_grad(true);
  const Tensor root = mul(autograd, leaf, 2.0);
  root.register_hook([&](const Tensor&) {
    for (ZeroParameter& parameter : core.context().parameters)
      parameter.tensor.set_grad(Tensor::full({kWidth}, 0.5, DType::float32));
    core.on_gradient(core.context().parameters.front());  // queues the callback, sets buckets up
    const std::uint64_t before = heap_allocations();
    for (std::size_t i = 1; i < core.context().parameters.size(); ++i)
      core.on_gradient(core.context().parameters[i]);
    allocations += heap_allocations() - before;
    return Tensor();
  });
  autograd.backward(root);
  return allocations;
}

class HookPath : public ::testing::TestWithParam<int> {};

TEST_P(HookPath, Allocates_nothing) {
  HostWorld world({.world_size = 1});
  const CpuOps ops;
  Autograd autograd(ops);
  ManyParameters module(147);
  const ZeroConfig config{.stage = GetParam()};
  Engine::Core core(autograd, module, config, world.runtime(0), {}, LossScaler::of(config));
  EXPECT_EQ(allocations_of_hooks(core), 0u);
  EXPECT_EQ(allocations_of_hooks(core), 0u);  // not even the second time
  EXPECT_EQ(core.counters().backwards, 2);
}

INSTANTIATE_TEST_SUITE_P(Stages, HookPath, ::testing::Values(1, 2, 3),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace zeroproof

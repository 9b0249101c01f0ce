// Random numbers against those of PyTorch 2.11.0 for the same seeds.
#include "zeroproof/internal/model/rng.h"

#include <gtest/gtest.h>

#include "model/cpu_ops.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

// torch.manual_seed(5); torch.rand(3, dtype=torch.float64)
TEST(Rng, Draws_the_numbers_of_PyTorch) {
  Rng rng;
  rng.manual_seed(5);
  const std::vector<double> expected = {0.6420150066280941, 0.2597579151763153,
                                        0.36082761942715424};
  EXPECT_EQ(expected, rng.uniforms(Device::cpu(), 3));
}

TEST(Rng, Goes_on_where_its_state_was_and_keeps_devices_apart) {
  Rng rng;
  const Device device = Device::cuda(0);
  rng.uniforms(device, 700);
  const RngState state = rng.state(device);
  const std::vector<double> next = rng.uniforms(device, 3);
  EXPECT_NE(state, rng.state(device));
  EXPECT_EQ(Rng().state(Device::cpu()), rng.state(Device::cpu()));
  rng.set_state(device, state);
  EXPECT_EQ(next, rng.uniforms(device, 3));
}

// torch.manual_seed(123); torch.empty(12).bernoulli_(0.3): the mask of dropout(ones(12), 0.7)
TEST(Dropout, Keeps_what_PyTorch_keeps) {
  const CpuOps ops;
  Autograd ag(ops);
  ag.global().rng.manual_seed(123);
  const Tensor kept = dropout(ag, Tensor::full({12}, 1.0), 0.7);
  const std::vector<double> recorded = {0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1};
  for (std::size_t i = 0; i < recorded.size(); ++i)
    EXPECT_DOUBLE_EQ(recorded[i] / 0.3, kept.values()[i]) << i;
}

TEST(Dropout, Is_one_node_on_an_accelerator_and_none_where_nothing_is_random) {
  const CpuOps ops;
  Autograd ag(ops);
  const RngState before = ag.global().rng.state(Device::cpu());
  for (const Device device : {Device::cpu(), Device::cuda(0)}) {
    const Tensor x = Tensor::full({3}, 2.0).on(device);
    x.set_requires_grad(true);
    EXPECT_TRUE(dropout(ag, x, 0.0).is_same(x));
    EXPECT_EQ(std::vector<double>(3, 0.0), dropout(ag, x, 1.0).values());
    const Tensor y = dropout(ag, x, 0.5);
    EXPECT_EQ(device.is_cpu() ? "MulBackward0" : "NativeDropoutBackward0", y.grad_fn()->name());
    ag.backward(sum(ag, y));
    EXPECT_EQ(div(ag, y, 2.0).values(), x.grad().values());
  }
  EXPECT_NE(before, ag.global().rng.state(Device::cpu()));
}

}  // namespace
}  // namespace zeroproof

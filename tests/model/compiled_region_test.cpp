// Compiled regions: gathers and releases as operations of the graph, and what a skipped frame
// lacks.
#include "model/nn/compiled_region.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/accumulate_grad.h"
#include "model/cpu_ops.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof {
namespace {

using Words = std::vector<std::string>;
using Values = std::vector<double>;

Tensor leaf(const Values& values, Shape sizes) {
  const Tensor tensor = Tensor::of(values, std::move(sizes));
  tensor.set_requires_grad(true);
  return tensor;
}

std::shared_ptr<nn::Linear> small_linear(double scale) {
  return std::make_shared<nn::Linear>(leaf({0.3 * scale, -0.2, 0.5, 0.7}, {2, 2}),
                                      leaf({0.1, -0.4 * scale}, {2}));
}

// l1, tanh, l2.
class Block final : public nn::Module {
 public:
  std::shared_ptr<nn::Linear> l1 = register_module("l1", small_linear(1.0));
  std::shared_ptr<nn::Linear> l2 = register_module("l2", small_linear(2.0));

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {(*l2)(ag, tanh(ag, (*l1)(ag, inputs.at(0))))};
  }
};

struct CompiledRegionTest : ::testing::Test {
  CpuOps ops;
  Autograd ag{ops};
  Block block;
  Tensor x = Tensor::of({1.0, -2.0}, {1, 2});
  Words words;

  // Says the bias of the module that it works for.
  nn::RegionOperations reporting() {
    const auto says = [this](const std::string& what) {
      return [this, what](const TensorList& parameters) {
        words.push_back(what + (parameters[1].is_same(block.l1->bias) ? "l1" : "l2"));
      };
    };
    return {says("gather:"), says("release:")};
  }

  void watch_parameters() {
    for (const auto& [name, tensor] : block.named_parameters())
      tensor.register_post_accumulate_grad_hook(
          [this, of = "acc:" + name](const Tensor&) { words.push_back(of); });
  }

  std::vector<Values> gradients() {
    std::vector<Values> values;
    for (const auto& parameter : block.named_parameters()) {
      values.push_back(parameter.tensor.grad().values());
      parameter.tensor.set_grad({});
    }
    return values;
  }

  std::vector<Values> eager_gradients() {
    ag.backward(sq(ag, block(ag, x)));
    return gradients();
  }
};

TEST_F(CompiledRegionTest, Gathers_and_releases_around_each_module_in_forward_and_backward) {
  const nn::CompiledRegion region(block, reporting());
  watch_parameters();
  const Tensor loss = sq(ag, block(ag, x));
  EXPECT_EQ(words, (Words{"gather:l1", "release:l1", "gather:l2", "release:l2"}));
  words.clear();
  ag.backward(loss);
  EXPECT_EQ(words, (Words{"gather:l2", "release:l2", "acc:l2.weight", "acc:l2.bias", "gather:l1",
                          "release:l1", "acc:l1.weight", "acc:l1.bias"}));
}

TEST_F(CompiledRegionTest, Has_the_gradients_of_an_eager_run) {
  const std::vector<Values> eager = eager_gradients();
  const nn::CompiledRegion region(block, reporting());
  ag.backward(sq(ag, block(ag, x)));
  EXPECT_EQ(gradients(), eager);
}

TEST_F(CompiledRegionTest, Has_no_module_hooks_any_more) {
  block.l1->register_forward_pre_hook([this](const TensorList&) {
    words.push_back("hook");
    return TensorList{};
  });
  block.register_full_backward_hook([this](const TensorList&, const TensorList&) {
    words.push_back("hook");
    return TensorList{};
  });
  const nn::CompiledRegion region(block, reporting());
  ag.backward(sq(ag, block(ag, x)));
  EXPECT_EQ(std::count(words.begin(), words.end(), "hook"), 0);
}

TEST_F(CompiledRegionTest, Without_a_graph_gathers_in_forward_alone) {
  const nn::CompiledRegion region(block, reporting());
  const GradMode no_grad(ag, false);
  EXPECT_FALSE(block(ag, x).requires_grad());
  EXPECT_EQ(words, (Words{"gather:l1", "release:l1", "gather:l2", "release:l2"}));
}

TEST_F(CompiledRegionTest, Gives_the_parameters_back_when_a_module_throws) {
  const Tensor weight = block.l1->weight;
  const nn::CompiledRegion region(block, reporting());
  EXPECT_THROW(block(ag, Tensor::of({1.0}, {1, 1})), AutogradError);
  EXPECT_TRUE(block.l1->weight.is_same(weight));
}

// Parameters as ZeRO-3 keeps them: empty unless gathered.
struct PartitionedRegionTest : CompiledRegionTest {
  std::vector<std::pair<Tensor, Tensor>> full;
  std::vector<Values> reduced;

  void partition(const Tensor& parameter) {
    parameter.set_data(Tensor::of({}, {0}, parameter.dtype()));
  }
  void partition_all() {
    for (const auto& parameter : block.named_parameters()) {
      full.emplace_back(parameter.tensor, parameter.tensor.detach());
      partition(parameter.tensor);
    }
  }
  nn::RegionOperations zero3() {
    return {.gather =
                [this](const TensorList& parameters) {
                  for (const Tensor& parameter : parameters)
                    for (const auto& [known, data] : full)
                      if (known.is_same(parameter)) parameter.set_data(data);
                },
            .release =
                [this](const TensorList& parameters) {
                  for (const Tensor& parameter : parameters) partition(parameter);
                },
            .reduce =
                [this](const Tensor& parameter, const Tensor& grad) {
                  EXPECT_EQ(grad.sizes(), parameter.sizes()) << "released before the reduction";
                  reduced.push_back(grad.values());
                  return Tensor();
                }};
  }
};

TEST_F(PartitionedRegionTest, Trains_on_empty_parameters_and_leaves_them_empty) {
  std::vector<Values> eager = eager_gradients();
  partition_all();
  const nn::CompiledRegion region(block, zero3());
  ag.backward(sq(ag, block(ag, x)));
  std::sort(eager.begin(), eager.end());
  std::sort(reduced.begin(), reduced.end());
  EXPECT_EQ(reduced, eager);
  for (const auto& parameter : block.named_parameters()) {
    EXPECT_EQ(parameter.tensor.numel(), 0) << parameter.name;
    EXPECT_FALSE(parameter.tensor.grad().is_defined()) << parameter.name;
  }
}

// Pull request 8059: parameters are not gathered for a frame that the compiler skipped.
TEST_F(PartitionedRegionTest, A_skipped_frame_sees_empty_parameters) {
  partition_all();
  nn::CompiledRegion region(block, zero3());
  region.set_skipped(true);
  EXPECT_THROW(block(ag, x), AutogradError);
  region.set_skipped(false);
  EXPECT_NO_THROW(block(ag, x));
}

TEST_F(CompiledRegionTest, A_graph_made_before_the_skip_keeps_its_operations) {
  nn::CompiledRegion region(block, reporting());
  const Tensor loss = sq(ag, block(ag, x));
  region.set_skipped(true);
  words.clear();
  block(ag, x);
  EXPECT_EQ(words, Words{});
  ag.backward(loss);
  EXPECT_EQ(words, (Words{"gather:l2", "release:l2", "gather:l1", "release:l1"}));
}

}  // namespace
}  // namespace zeroproof

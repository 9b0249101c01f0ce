// DDP's reducer and FSDP2's units in a world of one. The orders of the reducer are those that
// PyTorch 2.11.0 prints for the same two layers with gloo and buckets of 64 bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/cpu_ops.h"
#include "model/custom_function.h"
#include "props/conform/ddp_reducer.h"
#include "props/conform/fsdp2_units.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof {
namespace {

Tensor leaf(Shape sizes, double value) {
  const Tensor tensor = Tensor::full(std::move(sizes), value);
  tensor.set_requires_grad(true);
  return tensor;
}

std::shared_ptr<nn::Linear> linear_layer() {
  return std::make_shared<nn::Linear>(leaf({4, 4}, 0.25), leaf({4}, 0.5));
}

// Two layers and whatever is done with them.
class Net final : public nn::Module {
 public:
  using Body = std::function<Tensor(Autograd&, const Net&, const Tensor&)>;
  explicit Net(Body body) : body_(std::move(body)) {}

  std::shared_ptr<nn::Linear> l1 = register_module("l1", linear_layer());
  std::shared_ptr<nn::Linear> l2 = register_module("l2", linear_layer());

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {body_(ag, *this, inputs.at(0))};
  }

 private:
  Body body_;
};

Tensor plain(Autograd& ag, const Net& net, const Tensor& x) {
  return (*net.l2)(ag, tanh(ag, (*net.l1)(ag, x)));
}

Tensor in_checkpoint(Autograd& ag, const nn::Linear& layer, const Tensor& x) {
  const auto body = [&](const TensorList& inputs) { return TensorList{layer(ag, inputs[0])}; };
  return checkpoint(ag, CheckpointKind::reentrant, body, {x})[0];
}

Tensor tied(Autograd& ag, const Net& net, const Tensor& x) {
  return in_checkpoint(ag, *net.l1, tanh(ag, in_checkpoint(ag, *net.l1, x)));
}

Tensor tied_and_plain(Autograd& ag, const Net& net, const Tensor& x) {
  return (*net.l2)(ag, tied(ag, net, x));
}

Tensor first_alone(Autograd& ag, const Net& net, const Tensor& x) {
  return (*net.l1)(ag, x);
}

// Its Function has no gradient for l2.weight (rule A3).
Tensor undefined_grad(Autograd& ag, const Net& net, const Tensor& x) {
  const CustomFunction first = {
      .name = "FirstBackward",
      .forward = [](FunctionContext&,
                    const TensorList& inputs) { return TensorList{inputs[0].detach()}; },
      .backward =
          [](FunctionContext&, const TensorList& grads) {
            return TensorList{grads[0], Tensor()};
          }};
  const Tensor out = apply_function(ag, first, {(*net.l1)(ag, x), net.l2->weight})[0];
  return add(ag, out, net.l2->bias);
}

class DdpTest : public ::testing::Test {
 protected:
  CpuOps ops;
  Autograd ag{ops};
  std::string words;

  void say(const std::string& word) { words += (words.empty() ? "" : " ") + word; }

  // Trains for a few iterations and returns what happened, one "|" at each end.
  std::string train(const Net::Body& body, DdpOptions options, int iterations = 3,
                    int backwards = 1) {
    options.bucket_bytes_cap = 64;
    Net net(body);
    const auto named = net.named_parameters();
    TensorList parameters;
    for (const auto& [name, tensor] : named) {
      parameters.push_back(tensor);
      tensor.register_post_accumulate_grad_hook(
          [this, of = "acc:" + name](const Tensor&) { say(of); });
    }
    DdpReducer reducer(ag, parameters, options,
                       [&](std::size_t index, const std::vector<std::size_t>& members) {
                         std::string word = "bucket:" + std::to_string(index) + "[";
                         for (const std::size_t i : members)
                           word += (word.back() == '[' ? "" : ",") + named[i].name;
                         say(word + "]");
                       });
    words.clear();
    try {
      for (int i = 0; i < iterations; ++i) {
        const Tensor loss = sq(ag, reducer.forward(net, leaf({2, 4}, 1.0)));
        for (int j = 1; j <= backwards; ++j) ag.backward(loss, {.retain_graph = j < backwards});
        say("|");
      }
    } catch (const AutogradError& error) {
      say(std::string("EXC:") + error.what());
    }
    grads.clear();
    for (const Tensor& parameter : parameters) grads.push_back(parameter.grad());
    return words;
  }

  TensorList grads;
};

const std::string kAccumulates = "acc:l2.bias acc:l2.weight acc:l1.bias acc:l1.weight ";
const std::string kOneBucket = kAccumulates + "bucket:0[l1.weight,l1.bias,l2.weight,l2.bias] | ";
const std::string kTwoBuckets =
    "acc:l2.bias acc:l2.weight bucket:0[l2.bias,l2.weight] "
    "acc:l1.bias acc:l1.weight bucket:1[l1.bias,l1.weight] |";

TEST_F(DdpTest, Rebuilds_its_buckets_once_in_the_order_of_readiness) {
  EXPECT_EQ(train(plain, {}), kOneBucket + kTwoBuckets + " " + kTwoBuckets);
}

TEST_F(DdpTest, Reduces_a_static_graph_late_in_the_first_iteration_and_rebuilds_after_the_second) {
  EXPECT_EQ(train(plain, {.is_static_graph = true}), kOneBucket + kOneBucket + kTwoBuckets);
}

TEST_F(DdpTest, Works_under_a_reentrant_checkpoint_that_uses_each_parameter_once) {
  const auto body = [](Autograd& autograd, const Net& net, const Tensor& x) {
    return (*net.l2)(autograd, in_checkpoint(autograd, *net.l1, x));
  };
  EXPECT_EQ(train(body, {}), kOneBucket + kTwoBuckets + " " + kTwoBuckets);
}

// Rule A7: a tied parameter fires once in each nested task.
TEST_F(DdpTest, Refuses_a_parameter_that_is_ready_twice) {
  EXPECT_EQ(train(tied, {}),
            "acc:l1.bias acc:l1.weight acc:l1.bias "
            "EXC:Expected to mark a variable ready only once.");
}

TEST_F(DdpTest, Counts_tied_parameters_of_a_static_graph) {
  const std::string accumulates = kAccumulates + "acc:l1.bias acc:l1.weight ";
  const std::string one = accumulates + "bucket:0[l1.weight,l1.bias,l2.weight,l2.bias] | ";
  EXPECT_EQ(train(tied_and_plain, {.is_static_graph = true}),
            one + one +
                "acc:l2.bias acc:l2.weight bucket:0[l2.bias,l2.weight] acc:l1.bias acc:l1.weight "
                "acc:l1.bias acc:l1.weight bucket:1[l1.bias,l1.weight] |");
}

TEST_F(DdpTest, Fails_the_forward_after_an_iteration_that_left_a_bucket_open) {
  EXPECT_EQ(train(first_alone, {}),
            "acc:l1.bias acc:l1.weight | EXC:Expected to have finished reduction in the prior "
            "iteration before starting a new one.");
}

TEST_F(DdpTest, Marks_unused_parameters_at_the_first_hook_and_leaves_their_gradients) {
  const std::string step =
      "acc:l1.bias bucket:0[l2.bias] bucket:1[l1.bias,l2.weight] acc:l1.weight "
      "bucket:2[l1.weight] |";
  EXPECT_EQ(train(first_alone, {.finds_unused = true}), step + " " + step + " " + step);
  EXPECT_TRUE(grads[0].is_defined());
  EXPECT_FALSE(grads[2].is_defined() || grads[3].is_defined());
}

TEST_F(DdpTest, Puts_unused_parameters_of_a_static_graph_last) {
  const std::string one =
      "acc:l1.bias acc:l1.weight bucket:0[l1.weight,l1.bias,l2.weight,l2.bias] | ";
  EXPECT_EQ(train(first_alone, {.is_static_graph = true}),
            one + one +
                "acc:l1.bias acc:l1.weight bucket:0[l1.bias,l1.weight] bucket:1[l2.weight] "
                "bucket:2[l2.bias] |");
  EXPECT_FALSE(grads[2].is_defined() || grads[3].is_defined());
}

// Rules A3 and A5: the posthook fires all the same.
TEST_F(DdpTest, Gives_zeros_to_a_parameter_without_a_gradient) {
  EXPECT_EQ(train(undefined_grad, {}), kOneBucket + kTwoBuckets + " " + kTwoBuckets);
  EXPECT_EQ(grads.at(2).values(), std::vector<double>(16, 0.0));
}

TEST_F(DdpTest, Reduces_in_the_first_of_two_backwards_only) {
  EXPECT_EQ(train(plain, {}, 1, 2),
            kAccumulates + "bucket:0[l1.weight,l1.bias,l2.weight,l2.bias] " + kAccumulates + "|");
}

TEST_F(DdpTest, Reduces_nothing_without_sync) {
  Net net(plain);
  TensorList parameters;
  for (const auto& parameter : net.named_parameters()) parameters.push_back(parameter.tensor);
  int buckets = 0;
  DdpReducer reducer(ag, parameters, {}, [&](std::size_t, const auto&) { ++buckets; });
  reducer.set_sync(false);
  ag.backward(sq(ag, reducer.forward(net, leaf({2, 4}, 1.0))));
  EXPECT_EQ(buckets, 0);
  reducer.set_sync(true);
  ag.backward(sq(ag, reducer.forward(net, leaf({2, 4}, 1.0))));
  EXPECT_EQ(buckets, 1);
}

class Fsdp2Test : public ::testing::Test {
 protected:
  CpuOps ops;
  Autograd ag{ops};
  std::vector<std::string> words;
  Fsdp2Units units{ag, [this](const std::string& what) { words.push_back(what); }};

  using Words = std::vector<std::string>;
};

TEST_F(Fsdp2Test, Catches_up_at_the_end_with_what_no_input_told) {
  Net net([](Autograd& autograd, const Net& self, const Tensor& x) {
    return tanh(autograd, plain(autograd, self, x));
  });
  units.add(net, "root");
  units.add(*net.l1, "l1");
  units.add(*net.l2, "l2");
  ag.backward(sq(ag, net(ag, Tensor::full({2, 4}, 1.0))));
  EXPECT_EQ(words, (Words{"cb_queued", "pre_bwd:root", "pre_bwd:l2", "post_bwd:l2", "pre_bwd:l1",
                          "final+", "post_bwd:root", "post_bwd:l1", "final-"}));
}

TEST_F(Fsdp2Test, Ends_with_the_nested_task_when_only_an_inner_module_is_wrapped) {
  Net net([](Autograd& autograd, const Net& self, const Tensor& x) {
    return (*self.l2)(autograd, in_checkpoint(autograd, *self.l1, x));
  });
  units.add(*net.l1, "l1");
  const Tensor x = leaf({2, 4}, 1.0);
  x.register_post_accumulate_grad_hook([this](const Tensor&) { words.emplace_back("acc:x"); });
  ag.backward(sq(ag, net(ag, x)));
  EXPECT_EQ(words, (Words{"cb_queued", "pre_bwd:l1", "post_bwd:l1", "final+", "final-", "acc:x"}));
}

// Rule C6.
TEST_F(Fsdp2Test, A_failed_backward_leaves_its_callback_queued_until_a_reset) {
  Net net(plain);
  units.add(net, "root");
  const auto backward = [&] { ag.backward(sq(ag, net(ag, leaf({2, 4}, 1.0)))); };
  HookHandle fails = net.l1->bias.register_post_accumulate_grad_hook(
      [](const Tensor&) { throw AutogradError("injected"); });
  EXPECT_THROW(backward(), AutogradError);
  EXPECT_TRUE(units.has_queued());
  fails.remove();
  words.clear();
  backward();
  EXPECT_EQ(std::count(words.begin(), words.end(), "final+"), 0);
  units.reset();
  words.clear();
  backward();
  EXPECT_EQ(words, (Words{"cb_queued", "pre_bwd:root", "post_bwd:root", "final+", "final-"}));
}

}  // namespace
}  // namespace zeroproof

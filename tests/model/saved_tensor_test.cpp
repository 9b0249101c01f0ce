// What nodes keep for their backward, with and without hooks (rules S1 to S4).
#include "model/saved_tensor.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/accumulate_grad.h"
#include "model/cpu_ops.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

using Body = std::function<Tensor(Autograd&, const TensorList&)>;

Tensor leaf_of(const Shape& shape) {
  std::vector<double> values(static_cast<std::size_t>(numel(shape)));
  double value = 0.25;
  for (double& element : values) element = (value += 0.125);
  const Tensor leaf = Tensor::of(values, shape);
  leaf.set_requires_grad(true);
  return leaf;
}

// Keeps the tensors themselves and a word for each step.
class Recorder {
 public:
  Recorder(const Autograd& ag, TensorList inputs) : ag_(ag), inputs_(std::move(inputs)) {}

  SavedTensorHooks hooks() {
    return {.pack = [this](const Tensor& tensor) -> std::shared_ptr<void> {
              EXPECT_FALSE(ag_.is_grad_enabled());  // S1
              log("p:" + name_of(tensor));
              return std::make_shared<Tensor>(tensor);
            },
            .unpack =
                [this](const std::shared_ptr<void>& packed) {
                  const Tensor tensor = *static_cast<const Tensor*>(packed.get());
                  log("u:" + name_of(tensor));
                  return tensor;
                }};
  }
  void log(const std::string& word) { words_ += (words_.empty() ? "" : " ") + word; }
  const std::string& words() const { return words_; }

 private:
  std::string name_of(const Tensor& tensor) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (tensor.shares_storage_with(inputs_[i])) return "in" + std::to_string(i);
    return "out";
  }

  const Autograd& ag_;
  TensorList inputs_;
  std::string words_;
};

struct OrderCase {
  const char* name;
  std::vector<Shape> shapes;
  const char* recorded;  // with PyTorch 2.11.0
  Body body;
};

const std::vector<OrderCase>& order_cases() {
  using In = const TensorList&;
  static const std::vector<OrderCase> kCases = {
      {"mul",
       {{2, 3}, {3}},
       "p:in1 p:in0 u:in1 u:in0",
       [](Autograd& ag, In x) { return mul(ag, x[0], x[1]); }},
      {"div",
       {{2, 3}, {3}},
       "p:in1 p:in0 u:in1 u:in0",
       [](Autograd& ag, In x) { return div(ag, x[0], x[1]); }},
      {"pow", {{3}}, "p:in0 u:in0", [](Autograd& ag, In x) { return pow(ag, x[0], 3.0); }},
      {"abs", {{3}}, "p:in0 u:in0", [](Autograd& ag, In x) { return abs(ag, x[0]); }},
      {"sqrt", {{3}}, "p:out u:out", [](Autograd& ag, In x) { return sqrt(ag, x[0]); }},
      {"exp", {{3}}, "p:out u:out", [](Autograd& ag, In x) { return exp(ag, x[0]); }},
      {"log", {{3}}, "p:in0 u:in0", [](Autograd& ag, In x) { return log(ag, x[0]); }},
      {"tanh", {{3}}, "p:out u:out", [](Autograd& ag, In x) { return tanh(ag, x[0]); }},
      {"relu", {{3}}, "p:out u:out", [](Autograd& ag, In x) { return relu(ag, x[0]); }},
      {"sin", {{3}}, "p:in0 u:in0", [](Autograd& ag, In x) { return sin(ag, x[0]); }},
      {"cos", {{3}}, "p:in0 u:in0", [](Autograd& ag, In x) { return cos(ag, x[0]); }},
      {"mm",
       {{2, 3}, {3, 4}},
       "p:in1 p:in0 u:in1 u:in0",
       [](Autograd& ag, In x) { return mm(ag, x[0], x[1]); }},
      {"addmm",
       {{4}, {2, 3}, {3, 4}},
       "p:in1 p:in2 u:in1 u:in2",
       [](Autograd& ag, In x) { return addmm(ag, x[0], x[1], x[2]); }},
      {"bmm",
       {{5, 2, 3}, {5, 3, 4}},
       "p:in1 p:in0 u:in1 u:in0",
       [](Autograd& ag, In x) { return bmm(ag, x[0], x[1]); }},
      {"linear",
       {{2, 3}, {4, 3}, {4}},
       "p:in0 p:in1 u:in0 u:in1",
       [](Autograd& ag, In x) { return linear(ag, x[0], x[1], x[2]); }},
      {"mul by a number", {{3}}, "", [](Autograd& ag, In x) { return mul(ag, x[0], 2.0); }},
      {"sub", {{3}, {3}}, "", [](Autograd& ag, In x) { return sub(ag, x[0], x[1]); }},
  };
  return kCases;
}

class SavedTensors : public ::testing::Test {
 protected:
  const CpuOps ops_{};
  Autograd ag_{ops_};
};

TEST_F(SavedTensors, Are_packed_and_unpacked_in_the_recorded_order) {
  for (const OrderCase& op : order_cases()) {
    TensorList inputs;
    for (const Shape& shape : op.shapes) inputs.push_back(leaf_of(shape));
    Recorder recorder(ag_, inputs);
    Tensor result;
    {
      const SavedTensorHooksScope scope(ag_, recorder.hooks());
      result = op.body(ag_, inputs);
    }
    ag_.backward(sum(ag_, result));
    EXPECT_EQ(op.recorded, recorder.words()) << op.name;
  }
}

TEST_F(SavedTensors, Go_to_the_innermost_hooks_alone) {
  const Tensor x = leaf_of({3});
  Recorder outer(ag_, {x});
  Recorder inner(ag_, {x});
  const SavedTensorHooksScope outer_scope(ag_, outer.hooks());
  {
    const SavedTensorHooksScope inner_scope(ag_, inner.hooks());
    sin(ag_, x);
  }
  cos(ag_, x);
  EXPECT_EQ("p:in0", inner.words());
  EXPECT_EQ("p:in0", outer.words());
}

// S1: the node asks for it in the middle of its evaluation.
TEST_F(SavedTensors, Are_unpacked_after_the_tensor_hooks_and_prehooks_of_the_node) {
  const Tensor x = leaf_of({3});
  Recorder recorder(ag_, {x});
  Tensor y;
  {
    const SavedTensorHooksScope scope(ag_, recorder.hooks());
    y = sin(ag_, x);
  }
  y.grad_fn()->register_prehook([&](const TensorList&) {
    recorder.log("prehook");
    return TensorList{};
  });
  y.register_hook([&](const Tensor&) {
    recorder.log("hook");
    return Tensor();
  });
  x.register_hook([&](const Tensor&) {
    recorder.log("leaf");
    return Tensor();
  });
  ag_.backward(sum(ag_, y));
  EXPECT_EQ("p:in0 hook prehook u:in0 leaf", recorder.words());
}

TEST_F(SavedTensors, Are_compared_with_their_version_only_without_hooks) {
  for (const bool has_hooks : {false, true}) {
    Tensor h = mul(ag_, leaf_of({3}), 1.0);
    Recorder recorder(ag_, {h});
    Tensor y;
    {
      std::optional<SavedTensorHooksScope> scope;
      if (has_hooks) scope.emplace(ag_, recorder.hooks());
      y = sin(ag_, h);
    }
    mul_in_place(ag_, h, 2.0);
    const Tensor loss = sum(ag_, y);
    if (has_hooks) {
      EXPECT_NO_THROW(ag_.backward(loss));
    } else {
      EXPECT_THROW(ag_.backward(loss), AutogradError);
    }
  }
}

// S3.
TEST_F(SavedTensors, Keep_the_accumulate_grad_of_a_leaf_alive_with_hooks) {
  const Tensor w = leaf_of({3});
  Recorder recorder(ag_, {w});
  const SavedTensor plain(ag_, w, false);
  EXPECT_EQ(nullptr, find_accumulate_grad(w));
  const SavedTensorHooksScope scope(ag_, recorder.hooks());
  SavedTensor hooked(ag_, w, false);
  EXPECT_NE(nullptr, find_accumulate_grad(w));
  EXPECT_EQ(find_accumulate_grad(w), find_accumulate_grad(hooked.unpack(nullptr)));
  hooked.release();
  EXPECT_EQ(nullptr, find_accumulate_grad(w));
}

// D1.
TEST_F(SavedTensors, Are_gone_after_a_backward_that_does_not_retain_them) {
  const Tensor x = leaf_of({3});
  for (const bool has_hooks : {false, true}) {
    Recorder recorder(ag_, {x});
    Tensor loss;
    {
      std::optional<SavedTensorHooksScope> scope;
      if (has_hooks) scope.emplace(ag_, recorder.hooks());
      loss = sum(ag_, sin(ag_, x));
    }
    EXPECT_NO_THROW(ag_.backward(loss, {.retain_graph = true}));
    EXPECT_NO_THROW(ag_.backward(loss));
    EXPECT_THROW(ag_.backward(loss), AutogradError);
  }
}

}  // namespace
}  // namespace zeroproof

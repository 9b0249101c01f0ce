#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "zeroproof/model/autograd.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof {

// Numbers that repeat with a period of 11.
inline Tensor filled(Shape sizes, double first) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < numel(sizes); ++i)
    values.push_back(0.125 * static_cast<double>((i * 7 + 3) % 11) - 0.5 + first);
  return Tensor::of(values, std::move(sizes), DType::float32);
}

inline Tensor trainable(Shape sizes, double first) {
  Tensor tensor = filled(std::move(sizes), first);
  tensor.set_requires_grad(true);
  return tensor;
}

inline std::shared_ptr<nn::Linear> linear_layer(std::int64_t in, std::int64_t out) {
  return std::make_shared<nn::Linear>(trainable({out, in}, 0.01), trainable({out}, 0.1));
}

inline Tensor mean_square(Autograd& ag, const Tensor& x) {
  return mean(ag, mul(ag, x, x));
}

// Two linears; a vector that the root itself multiplies by, which is no linear's weight.
class MlpModel : public nn::Module {
 public:
  explicit MlpModel(bool has_loss = true) : has_loss_(has_loss) {
    l1_ = register_module("l1", linear_layer(4, 6));
    l2_ = register_module("l2", linear_layer(6, 3));
    scale_ = &register_parameter("scale", trainable({3}, 0.7));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor y = mul(ag, (*l2_)(ag, tanh(ag, (*l1_)(ag, inputs.at(0)))), *scale_);
    return {has_loss_ ? mean_square(ag, y) : y};
  }

 private:
  bool has_loss_;
  std::shared_ptr<nn::Linear> l1_, l2_;
  Tensor* scale_;
};

class BlockModel : public nn::Module {
 public:
  BlockModel() {
    a = register_module("a", linear_layer(5, 5));
    b = register_module("b", linear_layer(5, 5));
  }
  std::shared_ptr<nn::Linear> a, b;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {add(ag, inputs.at(0), (*b)(ag, tanh(ag, (*a)(ag, inputs.at(0)))))};
  }
};

// Two blocks, run as `around` says: plainly, or in a checkpoint.
class BlocksModel : public nn::Module {
 public:
  using Run = std::function<TensorList(Autograd& ag, const nn::Module& block, const Tensor& x)>;

  explicit BlocksModel(Run run, bool is_partly_frozen = false) : run_(std::move(run)) {
    inp_ = register_module("inp", linear_layer(4, 5));
    b1 = register_module("b1", std::make_shared<BlockModel>());
    b2 = register_module("b2", std::make_shared<BlockModel>());
    head_ = register_module("head", linear_layer(5, 2));
    if (!is_partly_frozen) return;
    for (const nn::Linear* frozen : {b1->a.get(), b2->b.get()}) {
      frozen->weight.set_requires_grad(false);
      frozen->bias.set_requires_grad(false);
    }
  }
  static TensorList plainly(Autograd& ag, const nn::Module& block, const Tensor& x) {
    return block(ag, TensorList{x});
  }
  template <CheckpointKind kind>
  static TensorList checkpointed(Autograd& ag, const nn::Module& block, const Tensor& x) {
    return checkpoint(ag, kind,
                      [&ag, &block](const TensorList& inputs) { return block(ag, inputs); }, {x});
  }
  std::shared_ptr<BlockModel> b1, b2;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    Tensor h = (*inp_)(ag, inputs.at(0));
    h = run_(ag, *b1, h).at(0);
    h = run_(ag, *b2, h).at(0);
    return {mean_square(ag, (*head_)(ag, h))};
  }

 private:
  Run run_;
  std::shared_ptr<nn::Linear> inp_, head_;
};

// One linear twice, and one that is not used.
class TiedModel : public nn::Module {
 public:
  TiedModel() {
    l_ = register_module("l", linear_layer(4, 4));
    register_module("unused", linear_layer(3, 3));
    head_ = register_module("head", linear_layer(4, 2));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor h = tanh(ag, (*l_)(ag, tanh(ag, (*l_)(ag, inputs.at(0)))));
    return {mean_square(ag, (*head_)(ag, h))};
  }

 private:
  std::shared_ptr<nn::Linear> l_, head_;
};

// Two losses over one trunk.
class TwoLossModel : public nn::Module {
 public:
  TwoLossModel() {
    trunk_ = register_module("trunk", linear_layer(4, 6));
    a_ = register_module("a", linear_layer(6, 2));
    b_ = register_module("b", linear_layer(6, 2));
    scale_ = &register_parameter("scale", trainable({6}, 0.7));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor h = mul(ag, tanh(ag, (*trunk_)(ag, inputs.at(0))), *scale_);
    return {mean_square(ag, (*a_)(ag, h)), mean(ag, (*b_)(ag, h))};
  }

 private:
  std::shared_ptr<nn::Linear> trunk_, a_, b_;
  Tensor* scale_;
};

// Uses a weight that a child owns, without calling the child.
class BorrowingModel : public nn::Module {
 public:
  BorrowingModel() {
    l1_ = register_module("l1", linear_layer(4, 5));
    lender_ = register_module("lender", linear_layer(5, 3));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor h = tanh(ag, (*l1_)(ag, inputs.at(0)));
    const Tensor& weight = lender_->read(lender_->weight);
    return {mean_square(ag, mm(ag, h, t(ag, weight)))};
  }

 private:
  std::shared_ptr<nn::Linear> l1_, lender_;
};

// Two linears side by side: the engine's forward runs `a`; `b` is the caller's to run past it.
class SidePathModel final : public nn::Module {
 public:
  SidePathModel() {
    a = register_module("a", linear_layer(4, 3));
    b = register_module("b", linear_layer(4, 3));
  }
  std::shared_ptr<nn::Linear> a, b;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {mean_square(ag, (*a)(ag, inputs.at(0)))};
  }
};

}  // namespace zeroproof

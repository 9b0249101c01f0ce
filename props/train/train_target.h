#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "zeroproof/engine/engine.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/nn/module.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof::train {

// What the program of a scenario calls: one rank's engines, or the unsharded baseline in the place
// of that rank. Engines are numbered in the order of the scenario's models.
class TrainTarget {
 public:
  virtual ~TrainTarget() = default;

  virtual Autograd& autograd() = 0;
  virtual int rank() const = 0;  // of those that train different data
  virtual nn::Module& module(std::size_t engine) = 0;

  virtual TensorList forward(std::size_t engine, const TensorList& inputs) = 0;
  // Returns the loss as the engine does: divided by the accumulation steps, or as `arguments` say.
  virtual Tensor backward(std::size_t engine, const Tensor& loss,
                          const BackwardArguments& arguments) = 0;
  // tensor.backward(): past the engines, though their hooks see it.
  virtual void tensor_backward(const TensorList& roots, const TensorList& grads,
                               bool retain_graph) = 0;
  virtual bool needs_scaler(std::size_t engine) = 0;
  virtual Tensor scale(std::size_t engine, const Tensor& loss, bool retain_graph) = 0;
  virtual void step(std::size_t engine) = 0;
  virtual void zero_grad(std::size_t engine) = 0;
  virtual void coalesce(std::size_t engine, const std::function<void()>& body) = 0;
  // From now on, whatever the accumulation steps say.
  virtual void set_boundary(std::size_t engine, bool is_boundary) = 0;

  // Something to compare besides the training itself: the result of a transform.
  virtual void record(const std::string& name, const Tensor& value) = 0;
};

}  // namespace zeroproof::train

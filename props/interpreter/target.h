#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "props/interpreter/observation.h"
#include "props/interpreter/tree_module.h"
#include "props/program/program.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof::program {

// What one rank of a program calls: its engines, or the unsharded reference in their place. Engines
// are numbered in the order of the program. Methods throw what engines throw. Not thread-safe.
class Target {
 public:
  virtual ~Target() = default;

  virtual Autograd& autograd() = 0;
  virtual int rank() const = 0;  // of those that train different data
  // Where its tensors live.
  virtual Device device() const { return Device::cpu(); }
  // Whether it is that rank of the world, or stands for it and its replicas.
  virtual bool stands_for(int world_rank) const = 0;
  // The reference skips what is refused, and reads no files.
  virtual bool is_reference() const = 0;
  virtual TreeModule& model(std::size_t engine) = 0;

  virtual TensorList forward(std::size_t engine, const TensorList& inputs) = 0;
  // Returns the loss as the engine does. `engines`: it, and those whose outputs are in the loss.
  virtual Tensor backward(std::size_t engine, const std::vector<std::size_t>& engines,
                          const Tensor& loss, const BackwardArguments& arguments) = 0;
  // value.backward().
  virtual void tensor_backward(const std::vector<std::size_t>& engines, const Tensor& root,
                               const Tensor& grad, const BackwardArguments& arguments) = 0;
  virtual Tensor scale(std::size_t engine, const Tensor& loss) = 0;
  // Observes gradients before, and the outcome and all values after a step at a boundary; else what
  // it says. Whether it was at a boundary.
  virtual bool step(std::size_t engine, Observations& seen) = 0;
  virtual void zero_grad(std::size_t engine) = 0;
  virtual void set_boundary(std::size_t engine, bool is_boundary) = 0;
  // Whether it was taken.
  virtual bool set_loss_scale(std::size_t engine, double loss_scale) = 0;
  virtual bool set_learning_rate(std::size_t engine, std::optional<std::size_t> group,
                                 double learning_rate) = 0;

  using Call = std::function<void()>;
  virtual void no_sync(std::size_t engine, const Call& body) = 0;
  virtual void coalesce(std::size_t engine, const Call& body) = 0;
  virtual void gathered(std::size_t engine, const TensorList& parameters,
                        std::optional<int> modifier, const Call& body) = 0;
  // What a context shows of a weight.
  virtual Tensor gathered_value(std::size_t, const Tensor& weight) const { return weight; }
  // Whether it was captured; the body has not run where it was not.
  virtual bool capture(std::size_t engine, const Call& body) = 0;
  // Runs it where the k-th allocation fails, and again if that failed. `rewind`: before it again.
  virtual void with_short_memory(int allocation, const Call& body, const Call& rewind) = 0;

  virtual void save(std::size_t engine, const Save& save, Observations& seen) = 0;
  virtual void load(std::size_t engine, const Load& load, Observations& seen) = 0;
  virtual void recreate(std::size_t engine) = 0;
  virtual void inspect(std::size_t engine, Inspect::What what, Observations& seen) = 0;

  virtual void register_external(std::size_t engine, const std::string& module) = 0;
  virtual void set_leaf(std::size_t engine, const std::string& module) = 0;
  virtual void evaluate_guards(std::size_t engine) = 0;
  virtual void release_gathered(std::size_t engine) = 0;
  // Whether that leaves everything as it was.
  virtual bool make_temporary(std::size_t engine) = 0;
  // What another engine of this configuration is refused with; none: it is made, and goes.
  virtual std::optional<std::string> try_config(const TryConfig& tried) = 0;
};

}  // namespace zeroproof::program

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "props/interpreter/data_plan.h"
#include "props/interpreter/user_backward.h"
#include "props/program/program.h"
#include "props/train/program_watch.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::train {
struct Subject;  // props/train/subject.h
}

namespace zeroproof::program {

// What one forward does otherwise than the others. Shared with its graph, whose backward may run
// parts of it again.
struct ForwardPlan {
  int expert = 0;
  std::vector<std::string> skipped = {};  // modules that do not run
  std::string spiked = {};                // the module whose gradient is times `spike`
  double spike = 1.0;
  const std::vector<Hook>* hooks = nullptr;  // must outlive the graph
  std::function<void(const Hook& hook)> run_hook = {};
};

struct TreeOptions {
  std::uint64_t seed = 7;  // equal on all ranks, unless their weights differ
  bool is_real = false;    // gradients depend on the weights
  // The unsharded truth: tiles are ordinary operations.
  bool is_reference = false;
  train::ProgramWatch* watch = nullptr;  // must outlive the graphs; null for none
  const train::Subject* subject = nullptr;
  // A tiled computation is about to add to this parameter; whether for the last time.
  std::function<void(const Tensor& parameter, bool is_ready)> mark_ready = {};
};

class Tree;

// The model of a program as a module. Takes {activations [2], factor of each use} and gives its
// losses and what else the model returns (props/program/model_tree.h). Parameters in float32.
class TreeModule final : public nn::Module {
 public:
  // Both must outlive it and its graphs.
  TreeModule(const Model& model, const UseTable& table, const TreeOptions& options);
  ~TreeModule() override;

  // Of the forwards from now on.
  void arm(std::shared_ptr<const ForwardPlan> plan);
  // One Linear or Custom module past every hook of the root: the mean of what it gives.
  Tensor call(Autograd& ag, const std::string& module, const TensorList& inputs) const;
  // A linear function of the module's weight alone, which has to be whole.
  Tensor use_weight(Autograd& ag, const std::string& module, const TensorList& inputs) const;
  // The module that registers the node; null where the node is not a module of its own.
  nn::Module* module_of(const std::string& node) const;
  // The first weight of a node.
  Tensor weight_of(const std::string& node) const;
  // The gradients that the user saw since this was asked last, one after the other, in an order of
  // their values.
  std::vector<double> take_seen();

  OutputContainer output_container() const override;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override;

 private:
  const Model& model_;
  std::unique_ptr<Tree> tree_;
};

}  // namespace zeroproof::program

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "props/interpreter/tree_module.h"
#include "zeroproof/model/nn/init.h"

namespace zeroproof::program {

// The nodes of a model as modules, and how a forward runs through them. What the root and its
// containers share.
class Tree {
 public:
  // All must outlive it.
  Tree(const Model& model, const UseTable& table, const TreeOptions& options);

  // Registers the modules of a list with `around`; of the first list on with the root.
  void build(const ModuleList& list, nn::Module& around);

  // `given` is {activations of the root, factors…}.
  Tensor run(Autograd& ag, const ModuleList& list, const Tensor& h, const TensorList& given);
  Tensor call(Autograd& ag, const std::string& module, const TensorList& inputs);
  // What a forward reads when it begins and uses later.
  void begin(const ModuleList& body);

  void arm(std::shared_ptr<const ForwardPlan> plan);
  nn::Module* module_of(const std::string& node) const;
  Tensor weight_of(const std::string& node) const;
  SeenGradients& seen() { return seen_; }

 private:
  template <class Kind>
  Tensor run_kind(Autograd& ag, const Module& node, const Kind& kind, const Tensor& h,
                  const TensorList& given);
  Tensor run_node(Autograd& ag, const Module& node, const Tensor& h, const TensorList& given);
  Tensor run_spiked(Autograd& ag, const Module& node, const Tensor& h, const TensorList& given);
  Tensor run_leaf(Autograd& ag, const Module& leaf, const UseTable::Range& range, const Tensor& h,
                  const TensorList& given);
  Tensor call_leaf(Autograd& ag, const Module& leaf, const Tensor& h, const TensorList& factors);
  Tensor run_checkpoint(Autograd& ag, const Module& node, const Checkpoint& spec, const Tensor& h,
                        const TensorList& given);
  Tensor run_tiles(Autograd& ag, const Module& node, const Tiled& spec, const Tensor& h,
                   const TensorList& given);
  TensorList differentiate_tiles(Autograd& ag, const Tiled& spec, const Tensor& h,
                                 const TensorList& given);
  Tensor tile_loss(Autograd& ag, const Tiled& spec, const Tensor& tile, const TensorList& given);
  void mark_ready(const ModuleList& list, bool is_ready) const;
  Tensor with_hooks(Autograd& ag, const Module& node, const Tensor& h);
  Tensor hooked(Autograd& ag, const Tensor& x, const Hook& hook) const;

  void build_node(const Module& node, nn::Module& around);
  void freeze(const Module& node, nn::Module& module) const;
  nn::Module& owner_of(const std::string& node) const;

  const Model& model_;
  const UseTable& table_;
  TreeOptions options_;
  nn::InitStream init_;
  std::shared_ptr<const ForwardPlan> plan_;
  int expert_ = 0;  // of the plan, where the experts look
  bool is_recomputing_ = false;
  SeenGradients seen_;
  TensorList closed_;  // factors of the call that comes, of a module that closes over them
  std::map<std::string, std::shared_ptr<nn::Module>> modules_;  // by node
  std::map<std::string, Tensor*> own_;                          // of OwnWeight nodes
  std::map<std::string, Tensor> held_;                          // by node, of the forward that runs
  std::vector<HookHandle> weight_hooks_;                        // of the plan
};

}  // namespace zeroproof::program

#pragma once

#include <memory>
#include <string>

#include "props/interpreter/user_backward.h"
#include "props/program/model_tree.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/nn/init.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::program {

// The modules that a tree is made of. They take {activations, factors} and add the sum of factor
// times weight to the activations.

struct LayerOptions {
  bool is_real = false;           // what a layer multiplies depends on the activations
  SeenGradients* seen = nullptr;  // where it is watched; must outlive it
  // Of one that closes over its factors: the next call's, which it takes; must outlive it.
  TensorList* closed = nullptr;
};

// "linear" is the nn::Linear inside.
std::shared_ptr<nn::Module> make_linear(nn::InitStream& init, const Linear& spec,
                                        const LayerOptions& options);
// Its weights are "weight" and "weight_twin/step".
std::shared_ptr<nn::Module> make_custom(nn::InitStream& init, const Custom& spec,
                                        const LayerOptions& options);
// "e0", "e1", …; which one runs is what `which` holds, which must outlive it.
std::shared_ptr<nn::Module> make_experts(nn::InitStream& init, const Experts& spec,
                                         const int& which);
// Its weight is another module's as well.
std::shared_ptr<nn::Module> make_tied(const Tensor& weight);
// Reads the weight of another module, which must outlive it: see read_weight().
std::shared_ptr<nn::Module> make_reader(nn::Module& owner, bool is_registered, SeenGradients* seen);

// The first weight of a module, as Python's attribute access reads it; registered external
// parameters are read without an observer. Undefined where it has none.
Tensor read_weight(nn::Module& owner, bool is_registered);

// h plus the sum of factor times weight. `seen`: where the user watches the gradient for what the
// weight multiplies; null: not.
Tensor add_use(Autograd& ag, const Tensor& h, const Tensor& factor, const Tensor& weight,
               SeenGradients* seen = nullptr);

}  // namespace zeroproof::program

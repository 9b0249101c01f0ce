#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "props/train/case_spec.h"
#include "props/train/layer.h"
#include "props/train/user_backward.h"
#include "zeroproof/model/nn/init.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::train {

// The modules of a generated model. They take {h, c} and return it with what they add to h.

// What a layer of a case is made for; all but `spec` must outlive it.
struct LayerUse {
  const LayerSpec& spec;
  std::size_t index = 0;
  bool returns = false;   // its weight as well; a raw one
  const int& throws;      // k: layer k - 1 throws Injected in the middle of its forward
  Tensor& closed_factor;  // what a closed one has in place of c, and takes
  SeenGradients& seen;    // where it is watched
};
std::shared_ptr<nn::Module> make_layer(nn::InitStream& init, const LayerUse& use);

// Two layers, of which each forward runs `which`, which must outlive them.
std::shared_ptr<nn::Module> make_experts(nn::InitStream& init, DataMode data, const int& which);

// Uses the first weight of another module, as attribute access does it, in a forward that is not
// its owner's.
class Reading final {
 public:
  // `layer` and `seen` must outlive it. `is_registered`: nobody has to be told of the read.
  // `seen`: null: nobody watches.
  Reading(nn::Module& layer, int calls, bool is_registered, SeenGradients* seen);

  TensorList operator()(Autograd& ag, const TensorList& inputs) const;

  // The weight; undefined where the layer has none.
  Tensor read() const;
  // What comes in, with what a defined weight adds to it.
  TensorList used(Autograd& ag, const Tensor& weight, const TensorList& inputs) const;

 private:
  nn::Module& layer_;
  double factor_;
  bool is_registered_;
  SeenGradients* seen_;
};

// A module that does so. What `reading` needs must outlive it.
std::shared_ptr<nn::Module> make_reader(const Reading& reading);

// The same, whose own weight it is, too.
std::shared_ptr<nn::Module> make_tied(const Reading& reading);

// Without parameters.
std::shared_ptr<nn::Module> make_aside();
// Nobody calls it; its weight is the layer's.
std::shared_ptr<nn::Module> make_owner(const nn::Module& layer);

// The sum of a weight; `seen`: as a product, whose backward needs the weight.
Tensor total_of(Autograd& ag, const Tensor& weight, const Tensor& h, SeenGradients* seen);

}  // namespace zeroproof::train

#pragma once

#include "zeroproof/model/autograd.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::train {

// Whether a generated model that an engine has left behind gets the gradients of one that no engine
// has had, from a backward of its user's; `dtype` is that of the model the engine made. Only where
// it has its parameters whole, and tells no engine of its tiles.
bool trains_alike(Autograd& autograd, nn::Module& left, nn::Module& untouched, DType dtype);

}  // namespace zeroproof::train

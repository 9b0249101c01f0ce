#pragma once

#include <functional>

#include "zeroproof/model/tensor.h"

namespace zeroproof {
class Autograd;
}

namespace zeroproof::mutation {

// F31: what a checkpoint runs again runs as backward is run, outside every autocast region.
TensorList recompute_without_context(Autograd& autograd, const std::function<TensorList()>& body);

}  // namespace zeroproof::mutation

#pragma once

#include <vector>

#include "zeroproof/model/nn/module.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// An error unless each tensor is a parameter of `module`, and in one group.
Result<void> check_groups(const nn::Module& module, const std::vector<TensorList>& groups);

}  // namespace zeroproof

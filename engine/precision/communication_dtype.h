#pragma once

#include "engine/zero/zero_parameter.h"
#include "zeroproof/engine/zero_config.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof {

// Sets the communication dtype of each parameter (docs/spec/zero.md 6.1). Without autocast: the
// configured one, else the model's. With autocast: its dtype for what modules of the safe classes
// own, by exact class; the parameter's own dtype for all others. A tied parameter is safe when one
// of its owners is. Upstream's flag is a process's; this one is the engine's.
void set_communication_dtypes(nn::Module& root, const ZeroConfig& config,
                              ZeroParameters& parameters);

}  // namespace zeroproof

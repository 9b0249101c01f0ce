#pragma once

#include <optional>

#include "model/custom_function.h"
#include "zeroproof/model/device.h"

namespace zeroproof {

class Autograd;

// torch.amp.custom_fwd: forward with the autocast state remembered in the context, as attributes
// _dtype and _fwd_used_autocast. With `cast_inputs`, a forward inside a region runs with autocast
// off on inputs cast to that dtype, and so will its backward. The forward of the split form has
// no context to remember anything in: see capture_in_setup_context.
CustomFunction custom_fwd(Autograd& autograd, CustomFunction function, DeviceType device,
                          std::optional<DType> cast_inputs = std::nullopt);

// What the split form does instead: setup_context remembers the state that forward ran under.
CustomFunction capture_in_setup_context(Autograd& autograd, CustomFunction function,
                                        DeviceType device);

// torch.amp.custom_bwd: backward in the state of forward, whether that was on or off and whatever
// is around backward. AutogradError from backward when the context does not have the attributes.
CustomFunction custom_bwd(Autograd& autograd, CustomFunction function, DeviceType device);

}  // namespace zeroproof

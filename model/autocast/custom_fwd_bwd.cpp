#include "model/autocast/custom_fwd_bwd.h"

#include <utility>

#include "model/autocast/autocast.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

constexpr const char* kUsedAutocast = "_fwd_used_autocast";
constexpr const char* kDType = "_dtype";

struct Decoration {
  Autograd& autograd;
  DeviceType device;
  std::optional<DType> cast_inputs;

  bool is_enabled() const { return autograd.local().autocast.on(device).is_enabled; }

  void capture(FunctionContext& ctx, bool is_used) const {
    ctx.set(kDType, autograd.local().autocast.on(device).dtype);
    ctx.set(kUsedAutocast, is_used);
  }

  TensorList cast(const TensorList& inputs) const {
    TensorList out = inputs;
    for (Tensor& input : out)
      if (input.is_defined() && input.device().type() == device && input.dtype() != DType::float64)
        input = to(autograd, input, *cast_inputs);
    return out;
  }

  // Calls forward(inputs) as cast_inputs says.
  template <class Forward>
  TensorList run(const TensorList& inputs, Forward forward) const {
    if (!cast_inputs || !is_enabled()) return forward(inputs);
    const Autocast off(autograd, device, {.is_enabled = false});
    return forward(cast(inputs));
  }
};

}  // namespace

CustomFunction custom_fwd(Autograd& autograd, CustomFunction function, DeviceType device,
                          std::optional<DType> cast_inputs) {
  const Decoration decoration{autograd, device, cast_inputs};
  if (function.is_split()) {
    function.forward_alone =
        [decoration, forward = std::move(function.forward_alone)](const TensorList& inputs) {
          return decoration.run(inputs, forward);
        };
    return function;
  }
  function.forward = [decoration, forward = std::move(function.forward)](FunctionContext& ctx,
                                                                         const TensorList& inputs) {
    decoration.capture(ctx, !decoration.cast_inputs && decoration.is_enabled());
    return decoration.run(inputs, [&](const TensorList& cast) { return forward(ctx, cast); });
  };
  return function;
}

CustomFunction capture_in_setup_context(Autograd& autograd, CustomFunction function,
                                        DeviceType device) {
  const Decoration decoration{autograd, device, std::nullopt};
  function.setup_context = [decoration, setup = std::move(function.setup_context)](
                               FunctionContext& ctx, const TensorList& inputs,
                               const TensorList& outputs) {
    decoration.capture(ctx, decoration.is_enabled());
    setup(ctx, inputs, outputs);
  };
  return function;
}

CustomFunction custom_bwd(Autograd& autograd, CustomFunction function, DeviceType device) {
  function.backward = [&autograd, device, backward = std::move(function.backward)](
                          FunctionContext& ctx, const TensorList& grads) {
    const bool is_enabled = ctx.get<bool>(kUsedAutocast);
    const Autocast state(autograd, device,
                         {.is_enabled = is_enabled, .dtype = ctx.get<DType>(kDType)});
    return backward(ctx, grads);
  };
  return function;
}

}  // namespace zeroproof

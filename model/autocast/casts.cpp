#include "model/autocast/casts.h"

#include <algorithm>
#include <utility>

#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/internal/model/transforms/transform_frame.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

// What one operation meets: a kind of device with autocast on, and its policy there.
struct Region {
  DeviceType device = DeviceType::cpu;
  DType dtype = DType::bfloat16;
  CastPolicy policy = CastPolicy::none;

  bool is_eligible(const Tensor& x) const {
    return x.is_defined() && x.device().type() == device && x.dtype() != DType::float64;
  }
};

// Accelerators come before the CPU when an operation has inputs on both.
Region region_of(const Autograd& ag, CastPolicies policies, const TensorList& inputs) {
  for (const DeviceType device : {DeviceType::accelerator, DeviceType::cpu}) {
    const AutocastSetting& setting = ag.local().autocast.on(device);
    const auto is_here = [&](const Tensor& x) {
      return x.is_defined() && x.device().type() == device;
    };
    const CastPolicy policy = device == DeviceType::cpu ? policies.cpu : policies.accelerator;
    if (policy != CastPolicy::none && setting.is_enabled &&
        std::any_of(inputs.begin(), inputs.end(), is_here))
      return {device, setting.dtype, policy};
  }
  return {};
}

// A captured tensor is wrapped again for each operation of a level that differentiates, so there
// is no key to remember it by (rule T2).
bool is_seen_as_itself(const Autograd& ag, const Tensor& x) {
  const auto& frame = ag.local().transforms;
  return !frame || frame->kind == TransformKind::vmap || is_of_level(x, *frame);
}

// A weight. What is cast with grad mode off has no node to share.
bool is_cacheable(Autograd& ag, const Region& region, const Tensor& x, DType dtype) {
  return dtype == region.dtype && x.dtype() == DType::float32 && x.requires_grad() && x.is_leaf() &&
         !x.impl().is_view && ag.is_grad_enabled() && ag.autocast_nesting().is_cache_enabled &&
         is_seen_as_itself(ag, x);
}

Tensor cached_cast(Autograd& ag, const Region& region, const Tensor& x, DType dtype) {
  if (!region.is_eligible(x) || x.dtype() == dtype) return x;
  if (!is_cacheable(ag, region, x, dtype)) return to(ag, x, dtype);
  if (const Tensor known = ag.global().cast_cache.find(x); known.is_defined())
    return without_dead_wrappers(known);
  Tensor cast = to(ag, x, dtype);
  ag.global().cast_cache.keep(x, cast);
  return cast;
}

DType widest(const Region& region, const TensorList& inputs) {
  DType dtype = region.dtype;
  for (const Tensor& input : inputs) {
    if (!region.is_eligible(input) || input.dtype() == dtype || dtype == DType::float32) continue;
    if (input.dtype() != DType::float32)
      throw AutogradError("Unexpected floating ScalarType in at::autocast::prioritize");
    dtype = DType::float32;
  }
  return dtype;
}

}  // namespace

TensorList cast_inputs(Autograd& ag, CastPolicies policies, const TensorList& inputs) {
  const Region region = region_of(ag, policies, inputs);
  TensorList cast = inputs;
  switch (region.policy) {
    case CastPolicy::none:
    case CastPolicy::float32_result:
      break;
    case CastPolicy::lower_precision:
    case CastPolicy::float32: {
      const bool is_lower = region.policy == CastPolicy::lower_precision;
      const DType dtype = is_lower ? region.dtype : DType::float32;
      for (std::size_t i = cast.size(); i-- > 0;) cast[i] = cached_cast(ag, region, cast[i], dtype);
      break;
    }
    case CastPolicy::promote: {
      const DType dtype = widest(region, inputs);
      for (Tensor& input : cast) input = cached_cast(ag, region, input, dtype);
    }
  }
  return cast;
}

bool is_float32_result(const Autograd& ag, CastPolicies policies, const TensorList& inputs) {
  const Region region = region_of(ag, policies, inputs);
  return region.policy == CastPolicy::float32_result && region.is_eligible(inputs[0]);
}

AutocastExclusion::AutocastExclusion(Autograd& autograd)
    : autograd_(autograd),
      was_excluded_(std::exchange(autograd.local().autocast.is_excluded, true)) {}

AutocastExclusion::~AutocastExclusion() {
  autograd_.local().autocast.is_excluded = was_excluded_;
}

}  // namespace zeroproof

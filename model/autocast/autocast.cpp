#include "model/autocast/autocast.h"

#include "zeroproof/model/autograd.h"

namespace zeroproof {
namespace {

bool is_supported(DeviceType device, DType dtype) {
  return device == DeviceType::accelerator || dtype == DType::bfloat16 || dtype == DType::float16;
}

AutocastOptions options_now(Autograd& autograd, DeviceType device) {
  const AutocastSetting& setting = autograd.local().autocast.on(device);
  return {setting.is_enabled, setting.dtype, autograd.autocast_nesting().is_cache_enabled};
}

}  // namespace

Autocast::Autocast(Autograd& autograd, DeviceType device, const AutocastOptions& options)
    : autograd_(autograd),
      device_(device),
      setting_before_(autograd.local().autocast.on(device)),
      was_cache_enabled_(autograd.autocast_nesting().is_cache_enabled) {
  AutocastSetting& setting = autograd.local().autocast.on(device);
  setting.dtype = options.dtype.value_or(setting.dtype);
  setting.is_enabled = options.is_enabled && is_supported(device, setting.dtype);
  AutocastNesting& nesting = autograd.autocast_nesting();
  ++nesting.regions;
  nesting.is_cache_enabled = options.is_cache_enabled.value_or(nesting.is_cache_enabled);
}

Autocast::~Autocast() {
  AutocastNesting& nesting = autograd_.autocast_nesting();
  if (--nesting.regions == 0) autograd_.global().cast_cache.clear();
  autograd_.local().autocast.on(device_) = setting_before_;
  nesting.is_cache_enabled = was_cache_enabled_;
}

AutocastStash stash_autocast(Autograd& autograd) {
  return {options_now(autograd, DeviceType::accelerator), options_now(autograd, DeviceType::cpu)};
}

}  // namespace zeroproof

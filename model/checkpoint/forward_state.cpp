#include "model/checkpoint/forward_state.h"

#include <algorithm>

#include "zeroproof/model/autograd.h"

namespace zeroproof {
namespace {

// The CPU and where the tensors live, each once.
std::vector<Device> devices_of(const TensorList& tensors) {
  std::vector<Device> devices = {Device::cpu()};
  for (const Tensor& tensor : tensors) {
    if (!tensor.is_defined()) continue;
    const Device device = tensor.device();
    if (std::find(devices.begin(), devices.end(), device) == devices.end())
      devices.push_back(device);
  }
  return devices;
}

}  // namespace

ForwardState::ForwardState(Autograd& autograd, const TensorList& inputs, bool preserves_rng_state)
    : autograd_(autograd), autocast_(stash_autocast(autograd)) {
  if (!preserves_rng_state) return;
  for (const Device device : devices_of(inputs))
    random_.emplace_back(device, autograd.global().rng.state(device));
}

TensorList ForwardState::run_again(const CheckpointBody& body, const TensorList& inputs) const {
  Rng& rng = autograd_.global().rng;
  std::vector<Device> devices;
  for (const auto& [device, state] : random_) devices.push_back(device);
  const RngFork fork(rng, devices);
  for (const auto& [device, state] : random_) rng.set_state(device, state);
  const GradMode grad_mode(autograd_, true);
  const AutocastReentry autocast(autograd_, autocast_);
  return body(inputs);
}

}  // namespace zeroproof

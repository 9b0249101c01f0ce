#include "model/checkpoint/forward_state.h"

#include <algorithm>

#include "model/autograd.h"

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

// Other autocast settings for a while.
class AutocastScope {
 public:
  AutocastScope(Autograd& autograd, const AutocastState& settings)
      : autograd_(autograd), before_(autograd.local().autocast) {
    AutocastState& now = autograd.local().autocast;
    now.cpu = settings.cpu;
    now.accelerator = settings.accelerator;
  }
  ~AutocastScope() { autograd_.local().autocast = before_; }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  Autograd& autograd_;
  AutocastState before_;
};

}  // namespace

ForwardState::ForwardState(Autograd& autograd, const TensorList& inputs, bool preserves_rng_state)
    : autograd_(autograd), autocast_(autograd.local().autocast) {
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
  const AutocastScope autocast(autograd_, autocast_);
  return body(inputs);
}

}  // namespace zeroproof

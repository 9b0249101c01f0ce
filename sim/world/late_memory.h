#pragma once

#include <memory>
#include <vector>

#include "zeroproof/internal/engine/runtime/stream.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof::sim {

class SimStream;
class SimStreams;

// Where memory of a rank with a late compute stream finds its streams; null once they are gone.
struct LateDevice {
  SimStreams* streams = nullptr;
  bool waits_before_first_use = true;  // false: memory that is handed out too early
};

// Elements on which a late compute stream works: a reader of them waits until it has caught
// up. Memory of the runtime is given in the order of that stream, as cudaMallocAsync does: what
// happens to it there first, the poison, is waited for by the first use on another stream.
class LateElements final : public DeviceElements {
 public:
  explicit LateElements(std::shared_ptr<LateDevice> device) : device_(std::move(device)) {}

  void set_ready(StreamEvent ready) { ready_ = ready; }
  void use_on(SimStream& stream);  // before work there
  std::vector<double> read(const TensorImpl& tensor) const override;

 private:
  std::shared_ptr<LateDevice> device_;
  StreamEvent ready_{-1};
  std::vector<StreamId> used_on_;  // besides the compute stream
};

}  // namespace zeroproof::sim

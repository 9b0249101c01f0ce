#include "sim/world/sim_memory.h"

#include <algorithm>
#include <limits>

#include "sim/world/sim_stream.h"
#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof::sim {

Tensor SimMemory::allocate(std::int64_t elements, DType dtype, Placement placement) {
  control_.reach(SeamCall::allocation);
  try {
    Tensor tensor = memory_.allocate(elements, dtype, placement);
    if (late_ && late_->streams && placement == Placement::device) give_in_order(tensor);
    return tensor;
  } catch (const RuntimeFault& fault) {
    control_.report(FindingKind::out_of_memory, fault.what());
    throw;
  }
}

// The poison is work of the compute stream, as on a GPU: it must not come after a use.
void SimMemory::give_in_order(const Tensor& tensor) {
  const auto elements = std::make_shared<LateElements>(late_);
  Storage& storage = *tensor.impl().storage;
  storage.device = elements;
  SimStream& compute = late_->streams->of(StreamRole::compute);
  if (is_poisoned_)
    compute.launch([memory = std::weak_ptr(tensor.impl().storage)] {
      if (const auto there = memory.lock())
        std::ranges::fill(there->elements, std::numeric_limits<double>::quiet_NaN());
      return true;
    });
  const StreamEvent ready = late_->streams->make_event();
  compute.push({.kind = StreamWork::Kind::record, .event = ready});
  elements->set_ready(ready);
}

}  // namespace zeroproof::sim

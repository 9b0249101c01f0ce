#include "sim/world/late_memory.h"

#include <algorithm>

#include "sim/world/sim_stream.h"

namespace zeroproof::sim {

void LateElements::use_on(SimStream& stream) {
  if (ready_.value < 0 || !device_->waits_before_first_use) return;
  if (stream.id() == StreamId{static_cast<std::int32_t>(StreamRole::compute)}) return;
  if (std::ranges::find(used_on_, stream.id()) != used_on_.end()) return;
  used_on_.push_back(stream.id());
  stream.push({.kind = StreamWork::Kind::wait, .event = ready_});
}

std::vector<double> LateElements::read(const TensorImpl& tensor) const {
  if (device_->streams) device_->streams->catch_up();
  std::vector<double> values;
  for_each_offset(tensor,
                  [&](std::size_t offset) { values.push_back(tensor.storage->elements[offset]); });
  return values;
}

}  // namespace zeroproof::sim

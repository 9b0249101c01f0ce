#include "sim/hook_order/device.h"

#include <algorithm>
#include <numeric>

namespace zeroproof::hook_order {

Tensor DeviceMemory::allocate(std::int64_t elements, DType dtype, Placement) {
  device_.count();
  Tensor tensor = Tensor::full({elements}, CollectiveTable::kGarbage, dtype);
  device_.note_memory(tensor);
  return tensor;
}

Device::Device(const Settings& settings, std::uint32_t rank, Surroundings& surroundings,
               BackwardObserver& observer)
    : settings_(settings),
      rank_(rank),
      surroundings_(surroundings),
      observer_(observer),
      streams_{
          DeviceStream(*this, surroundings.board, 0), DeviceStream(*this, surroundings.board, 1),
          DeviceStream(*this, surroundings.board, 2), DeviceStream(*this, surroundings.board, 3)},
      clock_(surroundings),
      memory_(*this),
      kernels_(*this) {
  std::vector<int> all(settings.ranks);
  std::iota(all.begin(), all.end(), 0);
  const int own = static_cast<int>(rank);
  for (int kind = 0; kind < kGroupKinds; ++kind) {
    const bool is_data = static_cast<GroupKind>(kind) == GroupKind::data;
    groups_.emplace_back(*this, static_cast<GroupKind>(kind), is_data ? all : std::vector{own},
                         is_data ? own : 0);
  }
}

void Device::push_done(std::uint32_t pass) {
  if (streams_[0].is_idle()) {
    streams_[0].skip();
    return observer_.on_backward_done(rank_, pass);
  }
  streams_[0].push(WorkKind::done).number = pass;
  streams_[0].start();
}

bool Device::is_held_up() const {
  return !held_up_by_.empty() &&
         !std::ranges::all_of(held_up_by_, [this](StreamEvent event) { return is_reached(event); });
}

// Whatever the rank queues from now on would come after it.
void Device::hold_up(StreamEvent event) {
  held_up_by_.push_back(event);
  for (DeviceStream& stream : streams_) {
    stream.push(WorkKind::wait).event = event;
    stream.start();
  }
}

void Device::complete(std::uint32_t stream) {
  streams_[stream].complete_collective();
  for (bool has_run = true; has_run;) {
    has_run = false;
    for (std::uint32_t bits = busy_; bits != 0; bits &= bits - 1)
      has_run |= streams_[static_cast<std::size_t>(std::countr_zero(bits))].advance();
  }
}

void Device::tell_queues(StateVisitor& visitor) const {
  visitor.number(std::uint64_t{busy_} << 8 | arrived_);
  for (std::uint32_t bits = busy_; bits != 0; bits &= bits - 1)
    visitor.number(streams_[static_cast<std::size_t>(std::countr_zero(bits))].pending_hash());
}

void Device::clear() {
  for (DeviceStream& stream : streams_) stream.clear();
  held_up_by_.clear();
  completions_.clear();
  busy_ = 0;
  arrived_ = 0;
}

void Device::note_memory(const Tensor& tensor) {
  if (!settings_.has_defects()) return;
  std::erase_if(memory_noted_, [](const auto& storage) { return storage.expired(); });
  memory_noted_.push_back(tensor.impl().storage);
}

void Device::scramble_memory() {
  for (const auto& noted : memory_noted_)
    if (const auto storage = noted.lock())
      std::ranges::fill(storage->elements, CollectiveTable::kGarbage);
}

void Device::look_for_race(std::uint32_t stream, const Cells& target, const Cells& source) {
  for (std::uint32_t other = 0; other < kStreams; ++other) {
    if (other == stream || (busy_ >> other & 1) == 0) continue;
    if (streams_[other].overlaps(target, true) || streams_[other].overlaps(source, false))
      return observer_.on_race(rank_);
  }
}

}  // namespace zeroproof::hook_order

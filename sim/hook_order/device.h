#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/zero/state_visitor.h"
#include "model/cpu_ops.h"
#include "sim/hook_order/device_parts.h"

namespace zeroproof::hook_order {

class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(Device& device) : device_(device) {}
  Tensor allocate(std::int64_t elements, DType dtype, Placement placement) override;
  MemoryStats stats(Placement) const override { return {}; }
  void reset_peak() override {}

 private:
  Device& device_;
};

class DeviceClock final : public Clock {
 public:
  explicit DeviceClock(const Surroundings& surroundings) : surroundings_(surroundings) {}
  std::int64_t now_ns() const override { return static_cast<std::int64_t>(surroundings_.events); }

 private:
  const Surroundings& surroundings_;
};

// One rank's runtime: a device whose memory holds contributions in place of numbers, and which
// never blocks its host. Streams and collectives are as late as the explorer wants.
class Device final : public Runtime {
 public:
  static constexpr std::uint32_t kStreams = 4;  // by StreamRole

  // `settings` and the two others must outlive it.
  Device(const Settings& settings, std::uint32_t rank, Surroundings& surroundings,
         BackwardObserver& observer);

  int rank() const override { return static_cast<int>(rank_); }
  int world_size() const override { return static_cast<int>(settings_.ranks); }
  zeroproof::Device device() const override { return {}; }
  Clock& clock() override { return clock_; }
  Memory& memory() override { return memory_; }
  Kernels& kernels() override { return kernels_; }
  const Ops& ops() const override { return ops_; }
  Stream& stream(StreamRole role) override { return streams_[static_cast<std::size_t>(role)]; }
  Stream& user_stream(StreamIndex) override { return streams_[0]; }
  ProcessGroup& group(GroupKind kind) override { return groups_[static_cast<std::size_t>(kind)]; }
  GraphCapture* graphs() override { return nullptr; }
  std::optional<std::string> poll_error() override { return std::nullopt; }
  Journal* journal() override { return nullptr; }
  FaultPoint* faults() override { return nullptr; }

  // Between executions: without counts, and collectives are of one rank.
  void set_quiet(bool is_quiet) { is_quiet_ = is_quiet; }
  bool is_quiet() const { return is_quiet_; }
  bool is_deaf() const { return settings_.defect == Defect::lost_wait; }
  void count() {
    if (!is_quiet_) ++surroundings_.events;
  }

  // What the compute stream comes to after the epilogue of a pass.
  void push_done(std::uint32_t pass);
  // The host waits for something: no step until it has happened.
  bool is_held_up() const;
  void hold_up(StreamEvent event);
  bool is_idle() const { return busy_ == 0; }
  std::uint32_t arrived() const { return arrived_; }  // a bit a stream
  DeviceStream& at(std::uint32_t index) { return streams_[index]; }
  const DeviceStream& at(std::uint32_t index) const { return streams_[index]; }
  bool is_reached(StreamEvent event) const {
    const auto value = static_cast<std::uint64_t>(event.value);
    return streams_[value % kStreams].done() >= value / kStreams;
  }
  void complete(std::uint32_t stream);  // its collective
  void clear();                         // the next execution begins
  // With a defect, memory may be read before it is written: it must hold the same.
  void note_memory(const Tensor& tensor);
  void scramble_memory();

  // For the parts.
  std::uint32_t number() const { return rank_; }
  Surroundings& surroundings() { return surroundings_; }
  BackwardObserver& observer() { return observer_; }
  void set_busy(std::uint32_t stream, bool is_busy) { set_bit(busy_, stream, is_busy); }
  void set_arrived(std::uint32_t stream, bool has_arrived) {
    set_bit(arrived_, stream, has_arrived);
  }
  // Work on `stream` is about to run.
  void check_race(std::uint32_t stream, const Cells& target, const Cells& source) {
    if ((busy_ & ~(1U << stream)) != 0) look_for_race(stream, target, source);
  }
  // As DeviceStream's, of all streams.
  std::uint64_t will_replace(const double* first, std::int64_t count) const {
    std::uint64_t replaced = 0;
    for (std::uint32_t bits = busy_; bits != 0; bits &= bits - 1)
      replaced |= at(static_cast<std::uint32_t>(std::countr_zero(bits))).will_replace(first, count);
    return replaced;
  }
  // What is queued, for the fingerprint of the rank.
  void tell_queues(StateVisitor& visitor) const;
  std::vector<StreamEvent>& completions() { return completions_; }

 private:
  static void set_bit(std::uint32_t& bits, std::uint32_t place, bool is_set) {
    bits = is_set ? bits | 1U << place : bits & ~(1U << place);
  }
  void look_for_race(std::uint32_t stream, const Cells& target, const Cells& source);

  const Settings& settings_;
  std::uint32_t rank_;
  Surroundings& surroundings_;
  BackwardObserver& observer_;
  bool is_quiet_ = true;
  std::uint32_t busy_ = 0;
  std::uint32_t arrived_ = 0;
  std::vector<std::weak_ptr<Storage>> memory_noted_;
  std::vector<StreamEvent> held_up_by_;
  std::vector<StreamEvent> completions_;  // of this execution's collectives
  std::array<DeviceStream, kStreams> streams_;
  DeviceClock clock_;
  DeviceMemory memory_;
  DeviceKernels kernels_;
  CpuOps ops_;
  std::vector<DeviceGroup> groups_;
};

}  // namespace zeroproof::hook_order

#pragma once

#include <cstdint>

#include "zeroproof/model/dtype.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

enum class Placement : std::uint8_t { device, host };  // host: CPU-offloaded state

struct MemoryStats {
  std::int64_t live_bytes = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t allocations = 0;  // ever made
};

// The buffers of one rank. Sizes count as on a real device: elements times the dtype's size,
// whatever the implementation keeps. Not thread-safe; tensors may outlive it.
class Memory {
 public:
  virtual ~Memory() = default;

  // A flat tensor without a graph; its values are garbage. Its bytes are live until the last
  // tensor on its storage is gone. Throws RuntimeFault when there is no room.
  virtual Tensor allocate(std::int64_t elements, DType dtype,
                          Placement placement = Placement::device) = 0;

  virtual MemoryStats stats(Placement placement) const = 0;
  virtual void reset_peak() = 0;  // to what is live now
};

}  // namespace zeroproof

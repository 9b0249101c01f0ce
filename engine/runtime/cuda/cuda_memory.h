#pragma once

#include <array>
#include <memory>

#include "engine/runtime/cuda/gpu.h"
#include "engine/runtime/memory_account.h"
#include "zeroproof/model/device.h"

namespace zeroproof::cuda {

// Stream-ordered memory of one GPU's pool, and pinned memory of the host that its kernels reach.
class CudaMemory final : public Memory {
 public:
  // `is_poisoned`: new memory is NaN, so that garbage shows.
  CudaMemory(std::shared_ptr<Gpu> gpu, Device device, bool is_poisoned, AccessObserver* accesses);
  ~CudaMemory() override;
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  Tensor allocate(std::int64_t elements, DType dtype,
                  Placement placement = Placement::device) override;
  MemoryStats stats(Placement placement) const override;
  void reset_peak() override;

 private:
  const std::shared_ptr<MemoryAccount>& account(Placement placement) const {
    return accounts_[static_cast<std::size_t>(placement)];
  }

  std::shared_ptr<Gpu> gpu_;
  Device device_;
  bool is_poisoned_;
  std::array<std::shared_ptr<MemoryAccount>, 2> accounts_;
};

}  // namespace zeroproof::cuda

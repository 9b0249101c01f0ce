#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/runtime/cuda/gpu.h"
#include "engine/runtime/cuda/kernels/launches.h"
#include "zeroproof/internal/engine/runtime/span.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof::cuda {

// Plain copies on one queue that do not depend on each other, put off until something else comes
// and then done by one kernel: a launch each costs more than copying a small tensor.
class CopyBatch {
 public:
  explicit CopyBatch(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  ~CopyBatch() = default;
  CopyBatch(const CopyBatch&) = delete;
  CopyBatch& operator=(const CopyBatch&) = delete;

  // Of dense spans of one dtype on the GPU that share no memory.
  void add(cudaStream_t queue, const Span& to, const Span& from);

 private:
  // How the batch uses a storage: it writes what lies before `end`, or reads.
  struct Use {
    std::shared_ptr<Storage> storage;  // until the kernel is queued
    bool is_written = false;
    std::int64_t end = 0;  // in elements of the storage
  };
  using Uses = std::map<const Storage*, Use>;  // looked up, never walked through

  bool fits_behind(const Span& to, const Span& from) const;
  void run();

  std::shared_ptr<Gpu> gpu_;
  cudaStream_t queue_ = nullptr;
  std::vector<CopyRange> ranges_;
  Uses uses_;
};

}  // namespace zeroproof::cuda

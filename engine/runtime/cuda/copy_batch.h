#pragma once

#include <memory>
#include <vector>

#include "engine/runtime/cuda/gpu.h"
#include "engine/runtime/cuda/kernels/launches.h"
#include "engine/runtime/span.h"
#include "model/tensor_impl.h"

namespace zeroproof::cuda {

// Plain copies on the compute stream into one buffer, from left to right, put off until something
// else comes and then done by one kernel: a launch each costs more than copying a small tensor.
class CopyBatch {
 public:
  explicit CopyBatch(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  ~CopyBatch() = default;
  CopyBatch(const CopyBatch&) = delete;
  CopyBatch& operator=(const CopyBatch&) = delete;

  // Of dense spans of one dtype on the GPU that share no memory.
  void add(const Span& to, const Span& from);

 private:
  bool fits_behind(const Span& to) const;
  void run();

  std::shared_ptr<Gpu> gpu_;
  std::vector<CopyRange> ranges_;
  std::shared_ptr<Storage> target_;
  std::int64_t end_ = 0;  // of the last range, in elements of the target's storage
  std::vector<std::shared_ptr<Storage>> sources_;
};

}  // namespace zeroproof::cuda

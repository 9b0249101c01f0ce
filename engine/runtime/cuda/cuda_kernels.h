#pragma once

#include <deque>
#include <memory>

#include "engine/runtime/cuda/copy_batch.h"
#include "engine/runtime/cuda/device_buffer.h"
#include "engine/runtime/host/host_stream.h"
#include "zeroproof/engine/runtime/cuda/cuda_world.h"
#include "zeroproof/internal/engine/runtime/kernels.h"

namespace zeroproof::cuda {

class CapturedUpdates;

// Kernels on the GPU's queues, with the bits of HostKernels; sums of squares beyond
// kOrderedSumMax elements excepted, whose order is another fixed one, and Adam where the fastest
// arithmetic is asked for. Elements that the host keeps
// are uploaded to be read; they cannot be written. `log` must outlive it.
class CudaKernels final : public Kernels {
 public:
  CudaKernels(std::shared_ptr<Gpu> gpu, CudaArithmetic arithmetic, const host::StreamLog& log);

  void fill(Stream& stream, const Span& span, double value) override;
  void copy(Stream& stream, const Span& to, const Span& from, double factor = 1.0) override;
  void add(Stream& stream, const Span& to, const Span& from, double factor = 1.0) override;
  void scale(Stream& stream, const Span& span, double factor) override;
  void divide(Stream& stream, const Span& span, double divisor) override;
  void add_squares(Stream& stream, const Span& to, const Span& from) override;
  void count_non_finite(Stream& stream, const Span& to, const Span& from) override;
  void adam(Stream& stream, const AdamUpdate& update) override;
  void sgd(Stream& stream, const SgdUpdate& update) override;
  void clip_factor(Stream& stream, const Span& factor, const Span& squares,
                   const ClipRule& rule) override;
  void scale_by(Stream& stream, const Span& span, const Span& factor) override;
  std::vector<double> read(Stream& stream, const Span& source) override;
  void write(Stream& stream, const Span& span, const std::vector<double>& values) override;

  // Where updates that are captured are noted; null: no capture.
  void collect_updates(CapturedUpdates* updates) { updates_ = updates; }

 private:
  class Source;
  Strided target(Stream& stream, const Span& target) const;
  double* partials(Stream& stream) const;
  Strided updated(Stream& stream, const Span& span, std::int64_t elements) const;

  std::shared_ptr<Gpu> gpu_;
  CudaArithmetic arithmetic_;
  const host::StreamLog& log_;
  CopyBatch copies_;
  std::deque<DeviceBuffer> partials_;  // of sums, a buffer a stream: two may sum at a time
  CapturedUpdates* updates_ = nullptr;
};

}  // namespace zeroproof::cuda

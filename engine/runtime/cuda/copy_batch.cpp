#include "engine/runtime/cuda/copy_batch.h"

#include <utility>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/cuda/device_buffer.h"

namespace zeroproof::cuda {
namespace {

std::int64_t begin_of(const Span& span) {
  return span.tensor->offset_elements + span.begin;
}

}  // namespace

// What the batch reads stays as it is, and what it writes is written once, from left to right.
bool CopyBatch::fits_behind(const Span& to, const Span& from) const {
  const auto target = uses_.find(to.tensor->storage.get());
  const auto source = uses_.find(from.tensor->storage.get());
  const bool is_target_free =
      target == uses_.end() || (target->second.is_written && begin_of(to) >= target->second.end);
  return is_target_free && (source == uses_.end() || !source->second.is_written);
}

void CopyBatch::add(cudaStream_t queue, const Span& to, const Span& from) {
  if (ranges_.empty() || queue != queue_ || !fits_behind(to, from)) {
    gpu_->defer([this] { run(); });  // an earlier batch goes first
    queue_ = queue;
  }
  ranges_.push_back({strided(to).data, strided(from).data, to.bytes()});
  uses_[to.tensor->storage.get()] = {to.tensor->storage, true, begin_of(to) + to.elements};
  uses_[from.tensor->storage.get()] = {from.tensor->storage, false, 0};
}

void CopyBatch::run() {
  const auto ranges = std::exchange(ranges_, {});
  const auto uses = std::exchange(uses_, {});
  ZP_CUDA(launch_copies(queue_, ranges));
}

}  // namespace zeroproof::cuda

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

bool CopyBatch::fits_behind(const Span& to) const {
  return target_ == to.tensor->storage && begin_of(to) >= end_;
}

void CopyBatch::add(const Span& to, const Span& from) {
  if (ranges_.empty() || !fits_behind(to)) {
    gpu_->put_off([this] { run(); });  // an earlier batch goes first
    target_ = to.tensor->storage;
  }
  ranges_.push_back({strided(to).data, strided(from).data, to.bytes()});
  end_ = begin_of(to) + to.elements;
  sources_.push_back(from.tensor->storage);
}

void CopyBatch::run() {
  const auto ranges = std::exchange(ranges_, {});
  const auto sources = std::exchange(sources_, {});  // until the kernel is queued
  const auto target = std::exchange(target_, nullptr);
  ZP_CUDA(launch_copies(gpu_->compute(), ranges));
}

}  // namespace zeroproof::cuda

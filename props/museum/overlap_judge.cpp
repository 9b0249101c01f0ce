#include "props/museum/overlap_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/tensor_impl.h"

namespace zeroproof::museum {
namespace {

constexpr StreamId kCompute{static_cast<std::int32_t>(StreamRole::compute)};
constexpr StreamId kReduction{static_cast<std::int32_t>(StreamRole::reduction)};

// Of one engine of stage 3. It is to queue three reductions; who else waits for them counts as
// well.
constexpr std::size_t kAheadMax = 16;

// Two flat buffers that take turns, and one rank that owns all of what is reduced; an abort waits
// for what it then drops.
bool has_two_buffers(const train::CaseSpec& spec) {
  const auto fits = [&](const train::LayerSpec& layer) {
    return layer.outputs * layer.inputs <= spec.bucket && layer.outputs <= spec.bucket;
  };
  return spec.has_overlap != 0 && spec.ranks == 1 && (spec.stage == 1 || spec.stage == 2) &&
         spec.is_scattered == 0 && spec.engines == 1 && (spec.experts == 0 || spec.bucket >= 4) &&
         std::ranges::all_of(spec.layers, fits) &&
         std::ranges::none_of(spec.micros, train::has_abort);
}

}  // namespace

OverlapJudge::OverlapJudge(const train::CaseSpec& spec)
    : is_judged_(has_two_buffers(spec)),
      is_host_judged_(spec.stage == 3),
      ahead_max_(kAheadMax * static_cast<std::size_t>(spec.engines)) {}

void OverlapJudge::on_access(const Access& access) {
  has_reduced_ |= access.stream == kReduction;
  if (!is_judged_ || access.span.is_empty()) return;
  const Storage* const storage = access.span.tensor->storage.get();
  if (access.stream == kReduction) {
    if (!awaited_.empty() && finding_.empty())
      finding_ =
          "the computation waited for all reductions, and the next one was queued before it "
          "had used anything that they made";
    awaited_.clear();
    reduced_.push_back(storage);
  } else if (awaited_.contains(storage)) {
    awaited_.clear();
  }
}

void OverlapJudge::on_record(StreamId stream, StreamEvent event) {
  if (stream == kReduction) newest_ = event;
  const bool is_end = stream == kReduction && std::exchange(has_reduced_, false);
  if (is_end && ++recorded_ > ahead_max_ && is_host_judged_ && finding_.empty())
    finding_ = fmt::format("the host queued {} reductions and waited for none of them", recorded_);
  if (is_judged_ && stream == kReduction) ends_[event] = reduced_.size();
}

// Several reductions of stage 3 may be on the way.
void OverlapJudge::on_host_wait(StreamEvent event) {
  recorded_ = 0;
  if (is_host_judged_ && event == newest_ && finding_.empty())
    finding_ =
        "the host waited for the last reduction that it had queued, and not for an older one";
}

void OverlapJudge::on_wait(StreamId stream, StreamEvent event) {
  const auto at = ends_.find(event);
  if (!is_judged_ || stream != kCompute || at == ends_.end() || at->second <= known_) return;
  const auto first = reduced_.begin() + static_cast<std::ptrdiff_t>(known_);
  const auto last = reduced_.begin() + static_cast<std::ptrdiff_t>(at->second);
  known_ = at->second;
  if (known_ == reduced_.size()) awaited_ = {first, last};
}

std::vector<RankObservers> AccessWatch::observers() {
  std::vector<RankObservers> all = races_.observers();
  all.front().accesses = &both_;
  return all;
}

void AccessWatch::Both::on_access(const Access& access) {
  first_.on_access(access);
  second_.on_access(access);
}

void AccessWatch::Both::on_record(StreamId stream, StreamEvent event) {
  first_.on_record(stream, event);
  second_.on_record(stream, event);
}

void AccessWatch::Both::on_wait(StreamId stream, StreamEvent event) {
  first_.on_wait(stream, event);
  second_.on_wait(stream, event);
}

void AccessWatch::Both::on_host_wait(StreamEvent event) {
  first_.on_host_wait(event);
  second_.on_host_wait(event);
}

void AccessWatch::Both::on_record_use(StreamId stream, const TensorImpl& tensor) {
  first_.on_record_use(stream, tensor);
  second_.on_record_use(stream, tensor);
}

void AccessWatch::Both::on_free(const Storage& storage) {
  first_.on_free(storage);
  second_.on_free(storage);
}

}  // namespace zeroproof::museum

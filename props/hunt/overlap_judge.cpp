#include "props/hunt/overlap_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof::hunt {
namespace {

constexpr StreamId kCompute{static_cast<std::int32_t>(StreamRole::compute)};
constexpr StreamId kReduction{static_cast<std::int32_t>(StreamRole::reduction)};
constexpr StreamId kGathers{static_cast<std::int32_t>(StreamRole::all_gather)};

// Of one engine of stage 3. It is to queue three reductions; who else waits for them counts as
// well.
constexpr std::int64_t kAheadMax = 16;
// And so many all-gathers of modules that the computation waits for.
constexpr std::size_t kGathersMax = 12;
// An all-gather is copied in, travels, and is copied out: that are two parts of its stream's work.
constexpr std::int64_t kPartsOfGather = 2;

}  // namespace

OverlapJudge::OverlapJudge(const OverlapRules& rules)
    : is_judged_(rules.judges_reductions),
      is_host_judged_(rules.judges_host),
      is_gather_judged_(rules.judges_gathers),
      ahead_max_(kAheadMax * rules.engines),
      gathers_max_(kGathersMax * static_cast<std::size_t>(rules.engines)) {}

void OverlapJudge::on_access(const Access& access) {
  const auto stream = static_cast<std::size_t>(access.stream.value);
  if (is_host_judged_ && stream < kStreams) has_worked_[stream] = true;
  if (is_host_judged_ && access.stream == kGathers && !access.span.is_empty()) see_gathers(access);
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

// What one gather made, a later one does not touch: who waits for the earlier one would wait for
// what came between, too.
void OverlapJudge::see_gathers(const Access& access) {
  const std::int64_t now = clocks_[kGathers.value][kGathers.value];
  const Storage* const storage = access.span.tensor->storage.get();
  if (access.is_write) made_.try_emplace(storage, now);
  const auto known = made_.find(storage);
  if (known == made_.end()) return;
  if (now - known->second >= kPartsOfGather && finding_.empty())
    finding_ = "a gather was put together once more, after gathers that were issued ahead since";
}

void OverlapJudge::on_record(StreamId stream, StreamEvent event) {
  if (stream == kReduction) newest_ = event;
  if (is_judged_ && stream == kReduction) ends_[event] = reduced_.size();
  const auto at = static_cast<std::size_t>(stream.value);
  if (!is_host_judged_ || at >= kStreams) return;
  if (std::exchange(has_worked_[at], false)) ++clocks_[at][at];
  events_[event] = clocks_[at];
  if (stream == kReduction) judge_ahead(stream);
}

void OverlapJudge::judge_ahead(StreamId stream) {
  const auto at = static_cast<std::size_t>(stream.value);
  const std::int64_t ahead = clocks_[at][at] - host_[at];
  if (ahead > ahead_max_ && finding_.empty())
    finding_ = fmt::format("the host queued {} reductions without a wait for any of them", ahead);
}

// Several reductions of stage 3 may be on the way.
void OverlapJudge::on_host_wait(StreamEvent event) {
  if (!is_host_judged_) return;
  if (event == newest_ && finding_.empty())
    finding_ =
        "the host waited for the last reduction that it had queued, and not for an older one";
  const auto known = events_.find(event);
  if (known == events_.end()) return;
  for (std::size_t i = 0; i < kStreams; ++i) host_[i] = std::max(host_[i], known->second[i]);
  while (!gathered_.empty() && gathered_.front() <= host_[kGathers.value]) gathered_.pop_front();
}

void OverlapJudge::on_wait(StreamId stream, StreamEvent event) {
  const auto waiting = static_cast<std::size_t>(stream.value);
  const auto known = events_.find(event);
  if (is_host_judged_ && waiting < kStreams && known != events_.end()) {
    Clock& clock = clocks_[waiting];
    const std::int64_t before = clock[kGathers.value];
    for (std::size_t i = 0; i < kStreams; ++i) clock[i] = std::max(clock[i], known->second[i]);
    const std::int64_t now = clock[kGathers.value];
    if (stream == kCompute && now > before && now > host_[kGathers.value]) gathered_.push_back(now);
    if (gathered_.size() > gathers_max_ && is_gather_judged_ && finding_.empty())
      finding_ =
          fmt::format("the computation waits for {} gathers, and the host waits for no gather",
                      gathered_.size());
  }
  const auto at = ends_.find(event);
  if (!is_judged_ || stream != kCompute || at == ends_.end() || at->second <= known_) return;
  const auto first = reduced_.begin() + static_cast<std::ptrdiff_t>(known_);
  const auto last = reduced_.begin() + static_cast<std::ptrdiff_t>(at->second);
  known_ = at->second;
  if (known_ == reduced_.size()) awaited_ = {first, last};
}

void OverlapJudge::on_free(const Storage& storage) {
  made_.erase(&storage);
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

}  // namespace zeroproof::hunt

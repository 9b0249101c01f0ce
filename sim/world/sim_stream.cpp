#include "sim/world/sim_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/check.h"
#include "sim/world/late_memory.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof::sim {
namespace {

std::string stream_name(int rank, std::int32_t id) {
  constexpr std::array<std::string_view, 4> kRoles = {"compute", "reduction", "all_gather",
                                                      "offload"};
  if (id < 4) return fmt::format("r{}.{}", rank, kRoles[static_cast<std::size_t>(id)]);
  return fmt::format("r{}.user{}", rank, id - 3);
}

constexpr auto kCompute = static_cast<std::int32_t>(StreamRole::compute);

bool runs_in_step(std::int32_t id, bool is_compute_late) {
  if (id == kCompute) return !is_compute_late;
  return id > static_cast<std::int32_t>(StreamRole::offload);
}

}  // namespace

SimStream::SimStream(StreamId id, bool is_in_step, std::string name, SimStreams& streams)
    : id_(id), is_in_step_(is_in_step), name_(std::move(name)), streams_(streams) {}

StreamEvent SimStream::record() {
  streams_.control().step({SeamOp::record, id_.value, 0});
  const StreamEvent event = streams_.make_event();
  if (auto* const observer = streams_.log().observer) observer->on_record(id_, event);
  push({.kind = StreamWork::Kind::record, .event = event});
  return event;
}

void SimStream::wait(StreamEvent event) {
  streams_.control().step({SeamOp::wait, id_.value, event.value});
  const bool is_reached = streams_.is_reached(event);
  if (auto* const observer = streams_.log().observer) observer->on_wait(id_, event);
  if (is_reached && queue_.empty()) return;
  if (is_in_step_) return streams_.control().block_on(event);
  push({.kind = StreamWork::Kind::wait, .event = event});
}

bool SimStream::query(StreamEvent event) {
  streams_.control().step({SeamOp::query, id_.value, event.value});
  const bool is_reached = streams_.is_reached(event);
  streams_.control().note_progress(is_reached);
  return is_reached;
}

void SimStream::synchronize(StreamEvent event) {
  streams_.control().step({SeamOp::synchronize, id_.value, event.value});
  if (auto* const observer = streams_.log().observer) observer->on_host_wait(event);
  streams_.control().block_on(event);
}

void SimStream::record_use(const Tensor& tensor) {
  ZP_CHECK(tensor.is_defined(), "use of an undefined tensor recorded");
  if (auto* const observer = streams_.log().observer) observer->on_record_use(id_, tensor.impl());
  push({.kind = StreamWork::Kind::keep, .memory = tensor.impl().storage});
}

void SimStream::prepare(const Span& span) {
  if (is_in_step_ || !span.tensor || !span.tensor->storage) return;
  const auto& device = span.tensor->storage->device;
  if (auto* const elements = dynamic_cast<LateElements*>(device.get())) elements->use_on(*this);
}

void SimStream::hold(const Span& span) {
  if (!streams_.is_late(*this) || !span.tensor) return;
  push({.kind = StreamWork::Kind::keep, .memory = span.tensor->storage});
}

bool SimStream::begin_kernel(std::int64_t elements) {
  streams_.control().step({SeamOp::kernel, id_.value, elements});
  ZP_CHECK(!is_in_step_ || queue_.empty(), "work in step after work that is not done");
  return is_in_step_;
}

void SimStream::launch(std::function<bool()> kernel) {
  push({.kind = StreamWork::Kind::kernel, .run = std::move(kernel)});
}

void SimStream::push(StreamWork work) {
  queue_.push_back(std::move(work));
  if (queue_.size() == 1) streams_.advance();
}

bool SimStream::can_run() const {
  if (queue_.empty()) return false;
  const StreamWork& work = queue_.front();
  if (work.kind == StreamWork::Kind::kernel) return true;
  return work.kind == StreamWork::Kind::collective && work.meeting->is_ready();
}

void SimStream::run_head() {
  const StreamWork work = std::move(queue_.front());
  queue_.pop_front();
  ++runs_;
  if (work.kind == StreamWork::Kind::collective) {
    run_collective(work);
  } else if (!work.run()) {
    streams_.control().report(
        FindingKind::use_after_free,
        fmt::format("work on {} found its memory freed: no stream waited for it, and no record_use "
                    "kept the memory",
                    name_));
  }
  streams_.advance();
}

void SimStream::run_collective(const StreamWork& work) {
  if (const auto gone = work.point->run(*work.meeting))
    streams_.control().report(
        FindingKind::use_after_free,
        fmt::format("{}, collective {}: memory of rank {} of the group was freed before it ran",
                    work.point->name(), work.meeting->sequence, *gone));
  work.point->complete(*work.meeting, work.member);
}

bool SimStream::advance() {
  bool has_moved = false;
  while (!queue_.empty()) {
    StreamWork& work = queue_.front();
    if (work.kind == StreamWork::Kind::kernel) break;
    if (work.kind == StreamWork::Kind::wait && !streams_.is_reached(work.event)) break;
    if (work.kind == StreamWork::Kind::collective) {
      work.meeting->parts[work.member]->is_at_head = true;
      break;
    }
    if (work.kind == StreamWork::Kind::record) streams_.reach(work.event);
    queue_.pop_front();
    has_moved = true;
  }
  return has_moved;
}

bool SimStream::will_record(StreamEvent event) const {
  return std::ranges::any_of(queue_, [&](const StreamWork& work) {
    return work.kind == StreamWork::Kind::record && work.event == event;
  });
}

void SimStream::clear() {
  queue_.clear();
}

SimStreams::SimStreams(RankControl& control, AccessObserver* observer, bool is_compute_late)
    : control_(control), log_{observer, 0}, is_compute_late_(is_compute_late) {}

bool SimStreams::is_late(const SimStream& stream) const {
  return is_compute_late_ && stream.id().value == kCompute;
}

void SimStreams::catch_up() {
  SimStream& compute = of(StreamRole::compute);
  if (compute.is_in_step() || compute.is_empty()) return;
  const StreamEvent event = make_event();
  compute.push({.kind = StreamWork::Kind::record, .event = event});
  control_.block_on(event);
}

SimStream& SimStreams::user(StreamIndex index) {
  ZP_CHECK(index >= 0, "a user stream with a negative number");
  const auto last_role = static_cast<std::int32_t>(StreamRole::offload);
  return index == 0 ? of(StreamRole::compute) : at(last_role + index);
}

SimStream& SimStreams::at(std::int32_t id) {
  const auto index = static_cast<std::size_t>(id);
  if (streams_.size() <= index) streams_.resize(index + 1);
  if (!streams_[index])
    streams_[index] = std::make_unique<SimStream>(StreamId{id}, runs_in_step(id, is_compute_late_),
                                                  stream_name(control_.rank(), id), *this);
  return *streams_[index];
}

StreamEvent SimStreams::make_event() {
  reached_.push_back(false);
  return StreamEvent{log_.events++};
}

bool SimStreams::is_reached(StreamEvent event) const {
  ZP_CHECK(event.value >= 0 && std::cmp_less(event.value, reached_.size()),
           "an event that no stream recorded");
  return reached_[static_cast<std::size_t>(event.value)];
}

void SimStreams::reach(StreamEvent event) {
  reached_[static_cast<std::size_t>(event.value)] = true;
}

void SimStreams::advance() {
  bool has_moved = true;
  while (has_moved) {
    has_moved = false;
    for (const auto& stream : streams_) has_moved |= stream && stream->advance();
  }
}

const SimStream* SimStreams::stream_of(StreamEvent event) const {
  for (const auto& stream : streams_)
    if (stream && stream->will_record(event)) return stream.get();
  return nullptr;
}

void SimStreams::clear() {
  for (const auto& stream : streams_)
    if (stream) stream->clear();
  reached_.assign(reached_.size(), true);
}

}  // namespace zeroproof::sim

#include "sim/hook_order/device_parts.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "model/check.h"
#include "sim/hook_order/device.h"

namespace zeroproof::hook_order {
namespace {

constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15U;  // odd: no bit is lost

Cells cells_of(Span span) {
  if (span.elements == 0) return {};
  TensorImpl& tensor = *span.tensor;
  return {tensor.storage->elements.data() + tensor.offset_elements + span.begin, span.elements};
}

std::shared_ptr<Storage> owner_of(Span span) {
  return span.tensor == nullptr ? nullptr : span.tensor->storage;
}

bool do_overlap(const Cells& left, const Cells& right) {
  return left.count > 0 && right.count > 0 && left.first < right.first + right.count &&
         right.first < left.first + left.count;
}

void run(const Task& task) {
  switch (task.kind) {
    case WorkKind::copy:
      for (std::int64_t i = 0; i < task.target.count; ++i)
        task.target.first[i] = task.source.first[i];
      break;
    case WorkKind::add:
      for (std::int64_t i = 0; i < task.target.count; ++i)
        task.target.first[i] += task.source.first[i];
      break;
    case WorkKind::fill:
      std::fill_n(task.target.first, task.target.count, task.value);
      break;
    case WorkKind::wait:
    case WorkKind::collective:
    case WorkKind::done:
      break;
  }
}

// At once where no work on the stream waits; else when its turn comes.
void launch(Device& device, Stream& stream, WorkKind kind, Span target, Span source,
            double value = 0.0) {
  device.count();
  auto& queue = static_cast<DeviceStream&>(stream);
  const Task task{kind, cells_of(target), cells_of(source), value};
  if (queue.is_idle()) {
    queue.skip();
    device.check_race(queue.index(), task.target, task.source);
    return run(task);
  }
  QueuedWork& work = queue.push(kind, task.target, task.source, value);
  work.target_owner = owner_of(target);
  work.source_owner = owner_of(source);
}

}  // namespace

// --- stream ------------------------------------------------------------------------------------

StreamEvent DeviceStream::record() {
  device_.count();
  return StreamEvent{static_cast<std::int64_t>(pushed_ * Device::kStreams + index_)};
}

void DeviceStream::wait(StreamEvent event) {
  device_.count();
  if (event.is_none() || device_.is_deaf() || device_.is_reached(event)) return;
  if (static_cast<std::uint64_t>(event.value) % Device::kStreams == index_) return;
  push(WorkKind::wait).event = event;
  start();
}

bool DeviceStream::query(StreamEvent event) {
  device_.count();
  return device_.is_reached(event);
}

void DeviceStream::synchronize(StreamEvent event) {
  device_.count();
  if (!event.is_none() && !device_.is_reached(event)) device_.hold_up(event);
}

void DeviceStream::record_use(const Tensor&) {
  device_.count();
}

QueuedWork& DeviceStream::push(WorkKind kind, Cells target, Cells source, double value) {
  ++pushed_;
  if (size_ == queue_.size()) {
    queue_.emplace_back();
    replaced_.emplace_back();
  }
  const bool replaces = kind != WorkKind::add && target.count != 0;
  replaced_[size_].begin = replaces ? target.first : nullptr;
  replaced_[size_].end = replaces ? target.first + target.count : nullptr;
  QueuedWork& work = queue_[size_++];
  work.task.kind = kind;
  work.task.target = target;
  work.task.source = source;
  work.task.value = value;
  work.event = {};
  work.number = 0;
  return work;
}

void DeviceStream::start() {
  if (head_ + 1 != size_) return;  // no work here could release what is before it
  device_.set_busy(index_, true);
  advance();
}

bool DeviceStream::advance() {
  bool has_run = false;
  while (!is_idle() && run_head()) has_run = true;
  return has_run;
}

bool DeviceStream::run_head() {
  const QueuedWork& work = queue_[head_];
  if (work.task.kind == WorkKind::wait && !device_.is_reached(work.event)) return false;
  if (work.task.kind == WorkKind::collective) {
    if (has_arrived_) return false;
    device_.check_race(index_, work.task.target, work.task.source);
    board_.arrive(device_.number(), work.number);
    has_arrived_ = true;
    device_.set_arrived(index_, true);
    return false;
  }
  device_.check_race(index_, work.task.target, work.task.source);
  run(work.task);
  const bool is_done = work.task.kind == WorkKind::done;
  const std::uint32_t pass = work.number;
  drop_head();
  if (is_done) device_.observer().on_backward_done(device_.number(), pass);
  return true;
}

void DeviceStream::drop_head() {
  ++done_;
  if (++head_ < size_) return;
  forget_queue();
  device_.set_busy(index_, false);
}

// The places stay, the memory does not.
void DeviceStream::forget_queue() {
  for (std::size_t at = 0; at < size_; ++at) {
    queue_[at].target_owner.reset();
    queue_[at].source_owner.reset();
  }
  head_ = size_ = 0;
}

void DeviceStream::complete_collective() {
  ZP_CHECK(has_arrived_, "no collective is at the head of the stream");
  board_.complete(device_.number(), queue_[head_].number);
  has_arrived_ = false;
  device_.set_arrived(index_, false);
  drop_head();
}

void DeviceStream::clear() {
  if (is_idle()) return;
  forget_queue();
  has_arrived_ = false;
  done_ = pushed_;
}

bool DeviceStream::overlaps(const Cells& cells, bool is_write) const {
  for (std::size_t at = head_; at < size_; ++at) {
    const QueuedWork& work = queue_[at];
    if (work.task.kind == WorkKind::wait && !device_.is_reached(work.event)) return false;
    if (do_overlap(work.task.target, cells)) return true;
    if (is_write && do_overlap(work.task.source, cells)) return true;
  }
  return false;
}

std::uint64_t DeviceStream::will_replace(const double* first, std::int64_t count) const {
  std::uint64_t bits = 0;
  for (std::size_t at = head_; at < size_; ++at) {
    const auto [begin, end] = replaced_[at];
    if (begin >= first + count || end <= first) continue;
    const std::int64_t from = std::max<std::int64_t>(begin - first, 0);
    const std::int64_t to = std::min<std::int64_t>(end - first, count);
    for (std::int64_t cell = from; cell < to; ++cell) bits |= std::uint64_t{1} << cell;
  }
  return bits;
}

std::uint64_t DeviceStream::pending_hash() const {
  std::uint64_t hash = 0;
  for (std::size_t at = head_; at < size_; ++at) {
    const QueuedWork& work = queue_[at];
    if (work.task.kind == WorkKind::wait && device_.is_reached(work.event)) continue;
    hash = hash * kBase + hash_of(work);
  }
  return hash;
}

// What it works on follows from the collectives around it, whose content is on the board.
std::uint64_t DeviceStream::hash_of(const QueuedWork& work) {
  return (static_cast<std::uint64_t>(work.task.kind) << 56 |
          static_cast<std::uint64_t>(work.number) << 32 |
          static_cast<std::uint32_t>(work.task.target.count)) *
             0xd1b54a32d192ed03U +
         1;
}

// --- kernels -----------------------------------------------------------------------------------

void DeviceKernels::fill(Stream& stream, const Span& target, double value) {
  launch(device_, stream, WorkKind::fill, target, {}, value);
}
void DeviceKernels::copy(Stream& stream, const Span& target, const Span& source, double) {
  launch(device_, stream, WorkKind::copy, target, source);
}
void DeviceKernels::add(Stream& stream, const Span& target, const Span& source, double) {
  launch(device_, stream, WorkKind::add, target, source);
}
void DeviceKernels::scale(Stream&, const Span&, double) {
  device_.count();
}
void DeviceKernels::divide(Stream&, const Span&, double) {
  device_.count();
}
std::vector<double> DeviceKernels::read(Stream& stream, const Span& source) {
  stream.synchronize();
  const Cells cells = cells_of(source);
  return std::vector<double>(cells.first, cells.first + cells.count);
}
void DeviceKernels::write(Stream& stream, const Span& target, const std::vector<double>& values) {
  stream.synchronize();
  std::ranges::copy(values, cells_of(target).first);
}

// --- groups ------------------------------------------------------------------------------------

Work DeviceGroup::all_reduce(Stream& stream, Span data, ReduceOp) {
  return issue(stream, CollectiveKind::all_reduce, data, data);
}
Work DeviceGroup::reduce(Stream& stream, Span data, int root, ReduceOp) {
  return issue(stream, CollectiveKind::reduce, data, data, root);
}
Work DeviceGroup::reduce_scatter(Stream& stream, Span output, Span input, ReduceOp) {
  if (size() == 1 && !device_.is_quiet()) device_.kernels().copy(stream, output, input);
  return issue(stream, CollectiveKind::reduce_scatter, output, input);
}
Work DeviceGroup::all_gather(Stream& stream, Span output, Span input) {
  return issue(stream, CollectiveKind::all_gather, output, input);
}
Work DeviceGroup::broadcast(Stream& stream, Span data, int root) {
  return issue(stream, CollectiveKind::broadcast, data, data, root);
}
Work DeviceGroup::barrier(Stream& stream) {
  return issue(stream, CollectiveKind::barrier, {}, {});
}

void DeviceGroup::announce(std::span<const ContentPart> parts) {
  if (!device_.is_quiet()) device_.surroundings().board.announce(parts);
}

Work DeviceGroup::issue(Stream& stream, CollectiveKind kind, Span output, Span input, int root) {
  if (device_.is_quiet()) return {};
  device_.count();
  if (size() == 1) return {};
  const Call call{kind, cells_of(input), cells_of(output), root};
  auto& queue = static_cast<DeviceStream&>(stream);
  const std::uint32_t number = device_.surroundings().board.call(device_.number(), call);
  QueuedWork& work = queue.push(WorkKind::collective, call.output, call.input);
  work.number = number;
  work.target_owner = owner_of(output);
  work.source_owner = owner_of(input);
  queue.start();
  device_.completions().push_back(stream.record());
  return {static_cast<std::int64_t>(device_.completions().size()) - 1};
}

void DeviceGroup::wait(Work work, Stream& stream) {
  if (work.sequence < 0) return;
  stream.wait(device_.completions()[static_cast<std::size_t>(work.sequence)]);
}

bool DeviceGroup::is_completed(Work work) {
  return work.sequence < 0 ||
         device_.is_reached(device_.completions()[static_cast<std::size_t>(work.sequence)]);
}

}  // namespace zeroproof::hook_order

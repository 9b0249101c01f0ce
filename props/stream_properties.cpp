#include "props/stream_properties.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/check.h"
#include "props/registry.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof {
namespace {

constexpr std::size_t kReductionWaits = 0;
constexpr std::size_t kOrderedReuse = 1;
constexpr std::size_t kRecordedBeforeFree = 2;
constexpr std::array<std::string_view, 3> kStreamNumbers = {"P46", "P47", "P48"};
constexpr std::size_t kHost = 0;

void join(std::vector<std::int64_t>& clock, const std::vector<std::int64_t>& other) {
  if (clock.size() < other.size()) clock.resize(other.size(), 0);
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

// Of the storage: where the span's part of it begins and ends. All that lies between the first and
// the last element, where a tensor has gaps.
std::pair<std::int64_t, std::int64_t> storage_range(const Span& span) {
  const TensorImpl& tensor = *span.tensor;
  std::int64_t extent = 1;
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
    extent += (tensor.sizes[d] - 1) * tensor.strides[d];
    elements *= tensor.sizes[d];
  }
  if (extent != elements) return {tensor.offset_elements, tensor.offset_elements + extent};
  const std::int64_t begin = tensor.offset_elements + span.begin;
  return {begin, begin + span.elements};
}

std::string actor_name(std::size_t actor) {
  return actor == kHost ? std::string("the host") : fmt::format("stream {}", actor - 1);
}

}  // namespace

std::size_t StreamOrderCheck::actor_of(StreamId stream) {
  return stream.is_none() ? kHost : static_cast<std::size_t>(stream.value) + 1;
}

StreamOrderCheck::Clock& StreamOrderCheck::clock_of(std::size_t actor) {
  if (clocks_.size() <= actor) clocks_.resize(actor + 1);
  if (clocks_[actor].size() <= actor) clocks_[actor].resize(actor + 1, 0);
  return clocks_[actor];
}

// What is queued now knows what the host knows.
void StreamOrderCheck::advance(std::size_t actor) {
  const Clock host = clock_of(kHost);
  Clock& clock = clock_of(actor);
  join(clock, host);
  clock[actor] += 1;
}

bool StreamOrderCheck::is_ordered(const Use& use, std::size_t actor, const Clock& clock) {
  return use.actor == actor || (use.actor < clock.size() && clock[use.actor] >= use.epoch);
}

StreamOrderCheck::Memory& StreamOrderCheck::memory_of(const TensorImpl& tensor) {
  ZP_CHECK(tensor.storage != nullptr, "a tensor without storage is used on no stream");
  const auto [at, is_new] = numbers_.try_emplace(tensor.storage.get(), next_number_);
  Memory& memory = memory_[at->second];
  if (is_new) {
    ++next_number_;
    memory.storage = tensor.storage;
    memory.address = tensor.storage.get();
    if (!tensor.storage->lease) unannounced_.push_back(at->second);
  }
  return memory;
}

// Clocks move in calls only, so what went between two calls went at the clocks of the first.
void StreamOrderCheck::find_freed() {
  std::erase_if(unannounced_, [this](std::uint64_t number) {
    const auto at = memory_.find(number);
    if (!at->second.storage.expired()) return false;
    free(at->second);
    numbers_.erase(at->second.address);
    memory_.erase(at);
    return true;
  });
}

void StreamOrderCheck::on_access(const Access& access) {
  find_freed();
  accesses_ += 1;
  if (access.span.is_empty()) return;
  const std::size_t actor = actor_of(access.stream);
  advance(actor);
  const Clock& clock = clock_of(actor);
  const auto [begin, end] = storage_range(access.span);
  const Use use{begin, end, actor, clock[actor], accesses_, access.is_write};
  Memory& memory = memory_of(*access.span.tensor);
  for (const Use& earlier : memory.uses) {
    const bool is_shared = earlier.begin < use.end && use.begin < earlier.end;
    const bool is_conflict = is_shared && (earlier.is_write || use.is_write);
    if (is_conflict && !is_ordered(earlier, actor, clock)) judge(memory, earlier, use);
  }
  // A use that is ordered after this use is ordered after what it covers.
  std::erase_if(memory.uses, [&](const Use& earlier) {
    const bool is_covered = use.begin <= earlier.begin && earlier.end <= use.end;
    const bool is_replaced = use.is_write || (!earlier.is_write && earlier.actor == actor);
    return is_covered && is_replaced && is_ordered(earlier, actor, clock);
  });
  memory.uses.push_back(use);
}

void StreamOrderCheck::on_record(StreamId stream, StreamEvent event) {
  find_freed();
  const std::size_t actor = actor_of(stream);
  const Clock host = clock_of(kHost);
  Clock& clock = clock_of(actor);
  join(clock, host);
  events_[event] = clock;
}

void StreamOrderCheck::on_wait(StreamId stream, StreamEvent event) {
  find_freed();
  const auto recorded = events_.find(event);
  if (recorded != events_.end()) join(clock_of(actor_of(stream)), recorded->second);
}

void StreamOrderCheck::on_host_wait(StreamEvent event) {
  find_freed();
  const auto recorded = events_.find(event);
  if (recorded != events_.end()) join(clock_of(kHost), recorded->second);
}

void StreamOrderCheck::on_record_use(StreamId stream, const TensorImpl& tensor) {
  find_freed();
  memory_of(tensor).recorded.insert(actor_of(stream));
}

void StreamOrderCheck::on_free(const Storage& storage) {
  find_freed();
  const auto known = numbers_.find(&storage);
  if (known == numbers_.end()) return;
  free(memory_.at(known->second));
  memory_.erase(known->second);
  std::erase(unannounced_, known->second);
  numbers_.erase(known);
}

void StreamOrderCheck::free(const Memory& memory) {
  const std::size_t actor = actor_of(home_);
  frees_ += 1;
  Clock clock = clock_of(actor);
  join(clock, clock_of(kHost));
  for (const Use& use : memory.uses) {
    if (is_ordered(use, actor, clock) || memory.recorded.contains(use.actor)) continue;
    add(kRecordedBeforeFree, use.number,
        fmt::format("{} was freed on {} while access {} on {} may still run, and was not recorded "
                    "there",
                    memory.name.empty() ? "a tensor" : memory.name, actor_name(actor), use.number,
                    actor_name(use.actor)));
  }
}

void StreamOrderCheck::judge(const Memory& memory, const Use& earlier, const Use& later) {
  const std::size_t property = later.is_write ? kOrderedReuse : kReductionWaits;
  add(property, later.number,
      fmt::format(
          "no event orders access {} ({} of elements {} to {} on {}) of {} before access {} "
          "({} on {})",
          earlier.number, earlier.is_write ? "write" : "read", earlier.begin, earlier.end - 1,
          actor_name(earlier.actor), memory.name.empty() ? "a tensor" : memory.name, later.number,
          later.is_write ? "write" : "read", actor_name(later.actor)));
}

void StreamOrderCheck::add(std::size_t property, std::uint64_t number, std::string text) {
  counts_[property] += 1;
  if (findings_[property].size() < kFindingsMax)
    findings_[property].push_back({find_property(kStreamNumbers[property]), number, 0,
                                   fmt::format("access {}", number), std::move(text), false});
}

std::vector<Verdict> StreamOrderCheck::verdicts() const {
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < kStreamNumbers.size(); ++i) {
    Verdict verdict;
    verdict.property = find_property(kStreamNumbers[i]);
    verdict.findings = findings_[i];
    verdict.finding_count = counts_[i];
    const bool is_applicable = i == kRecordedBeforeFree ? frees_ > 0 : accesses_ > 0;
    if (counts_[i] > 0)
      verdict.status = Status::falsified;
    else if (is_applicable)
      verdict.status = Status::held;
    else
      verdict.reason = "no access was observed";
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace zeroproof

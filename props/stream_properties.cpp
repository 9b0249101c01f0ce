#include "props/stream_properties.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/registry.h"

namespace zeroproof {
namespace {

constexpr std::size_t kReductionWaits = 0;
constexpr std::size_t kOrderedReuse = 1;
constexpr std::size_t kRecordedBeforeFree = 2;
constexpr std::array<std::string_view, 3> kNumbers = {"P46", "P47", "P48"};
constexpr std::size_t kHost = 0;

void join(std::vector<std::int64_t>& clock, const std::vector<std::int64_t>& other) {
  if (clock.size() < other.size()) clock.resize(other.size(), 0);
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
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

void StreamOrderCheck::on_access(const Access& access) {
  accesses_ += 1;
  if (access.span.is_empty()) return;
  const std::size_t actor = actor_of(access.stream);
  advance(actor);
  const Clock& clock = clock_of(actor);
  const Use use{
      access.span.begin, access.span.begin + access.span.elements, actor, clock[actor], accesses_,
      access.is_write};
  Memory& memory = memory_[access.span.tensor];
  for (const Use& earlier : memory.uses) {
    const bool is_shared = earlier.begin < use.end && use.begin < earlier.end;
    const bool is_conflict = is_shared && (earlier.is_write || use.is_write);
    if (is_conflict && !is_ordered(earlier, actor, clock)) judge(memory, earlier, use);
  }
  // Whoever is ordered after this use is ordered after what it covers.
  std::erase_if(memory.uses, [&](const Use& earlier) {
    const bool is_covered = use.begin <= earlier.begin && earlier.end <= use.end;
    const bool is_replaced = use.is_write || (!earlier.is_write && earlier.actor == actor);
    return is_covered && is_replaced && is_ordered(earlier, actor, clock);
  });
  memory.uses.push_back(use);
}

void StreamOrderCheck::on_record(StreamId stream, StreamEvent event) {
  const std::size_t actor = actor_of(stream);
  const Clock host = clock_of(kHost);
  Clock& clock = clock_of(actor);
  join(clock, host);
  events_[event] = clock;
}

void StreamOrderCheck::on_wait(StreamId stream, StreamEvent event) {
  const auto recorded = events_.find(event);
  if (recorded != events_.end()) join(clock_of(actor_of(stream)), recorded->second);
}

void StreamOrderCheck::on_host_wait(StreamEvent event) {
  const auto recorded = events_.find(event);
  if (recorded != events_.end()) join(clock_of(kHost), recorded->second);
}

void StreamOrderCheck::on_record_use(StreamId stream, const TensorImpl& tensor) {
  memory_[&tensor].recorded.insert(actor_of(stream));
}

void StreamOrderCheck::on_free(StreamId owner, const TensorImpl& tensor) {
  const auto known = memory_.find(&tensor);
  if (known == memory_.end()) return;
  frees_ += 1;
  const std::size_t actor = actor_of(owner);
  Clock clock = clock_of(actor);
  join(clock, clock_of(kHost));
  const Memory& memory = known->second;
  for (const Use& use : memory.uses) {
    if (is_ordered(use, actor, clock) || memory.recorded.contains(use.actor)) continue;
    add(kRecordedBeforeFree, use.number,
        fmt::format("{} was freed on {} while access {} on {} may still run, and was not recorded "
                    "there",
                    memory.name.empty() ? "a tensor" : memory.name, actor_name(actor), use.number,
                    actor_name(use.actor)));
  }
  memory_.erase(known);
}

void StreamOrderCheck::judge(const Memory& memory, const Use& earlier, const Use& later) {
  const std::size_t property = later.is_write ? kOrderedReuse : kReductionWaits;
  add(property, later.number,
      fmt::format("nothing orders access {} ({} of elements {} to {} on {}) of {} before access {} "
                  "({} on {})",
                  earlier.number, earlier.is_write ? "write" : "read", earlier.begin,
                  earlier.end - 1, actor_name(earlier.actor),
                  memory.name.empty() ? "a tensor" : memory.name, later.number,
                  later.is_write ? "write" : "read", actor_name(later.actor)));
}

void StreamOrderCheck::add(std::size_t property, std::uint64_t number, std::string text) {
  counts_[property] += 1;
  if (findings_[property].size() < kFindingsMax)
    findings_[property].push_back({find_property(kNumbers[property]), number, 0,
                                   fmt::format("access {}", number), std::move(text), false});
}

std::vector<Verdict> StreamOrderCheck::verdicts() const {
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < kNumbers.size(); ++i) {
    Verdict verdict;
    verdict.property = find_property(kNumbers[i]);
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

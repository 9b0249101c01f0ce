#include "sim/hook_order/collective_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "model/check.h"

namespace zeroproof::hook_order {
namespace {

constexpr std::array<std::string_view, 6> kKindNames = {"all_reduce", "reduce",    "reduce_scatter",
                                                        "all_gather", "broadcast", "barrier"};

// What a fact about a part is about; values follow.
constexpr std::uint32_t kContent = 0;
constexpr std::uint32_t kIsComplete = 1;
constexpr std::uint32_t kIsArrived = 2;
constexpr std::uint32_t kCalls = 3;
constexpr std::uint32_t kValues = 16;

std::uint64_t hash_of(const Call& call, const std::vector<ContentPart>& content) {
  std::uint64_t hash =
      static_cast<std::uint64_t>(call.kind) << 32 | static_cast<std::uint32_t>(call.root);
  const auto add = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  };
  add(static_cast<std::uint64_t>(call.input.count));
  for (const ContentPart& part : content)
    add(static_cast<std::uint64_t>(part.parameter) << 32 | static_cast<std::uint32_t>(part.begin));
  return hash;
}

}  // namespace

void CollectiveTable::clear() {
  for (std::uint32_t number = 0; number < used_; ++number) {
    Rendezvous& meeting = meetings_[number];
    meeting.called = meeting.arrived = meeting.completed = 0;
    meeting.is_broken = false;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) meeting.parts[rank].is_called = false;
  }
  used_ = 0;
  calls_ = {};
  content_.clear();
  mismatch_.clear();
}

std::uint32_t CollectiveTable::call(std::uint32_t rank, const Call& call) {
  const std::uint32_t number = calls_[rank]++;
  facts_.remove(place(rank, 0, kCalls), number);
  facts_.add(place(rank, 0, kCalls), number + 1);
  if (number == used_ && ++used_ > meetings_.size()) meetings_.emplace_back();
  Rendezvous& meeting = meetings_[number];
  Part& part = meeting.parts[rank];
  part.is_called = true;
  part.call = call;
  part.content.swap(content_);
  content_.clear();
  part.content_hash = hash_of(call, part.content);
  part.told.clear();
  tell(part, place(rank, number, kContent), part.content_hash);
  if (++meeting.called > 1) compare(meeting, rank, number);
  return number;
}

void CollectiveTable::compare(Rendezvous& meeting, std::uint32_t rank, std::uint32_t number) {
  for (std::uint32_t other = 0; other < ranks_; ++other) {
    const Part& theirs = meeting.parts[other];
    if (!theirs.is_called || theirs.content_hash == meeting.parts[rank].content_hash) continue;
    meeting.is_broken = true;
    if (mismatch_.empty())
      mismatch_ = fmt::format("collective {}: rank {} issued {}, but rank {} issued {}", number,
                              std::min(rank, other), description(std::min(rank, other), number),
                              std::max(rank, other), description(std::max(rank, other), number));
  }
}

std::string CollectiveTable::description(std::uint32_t rank, std::uint32_t number) const {
  const Part& part = meetings_[number].parts[rank];
  std::string text = fmt::format("{} of {}", kKindNames[static_cast<std::size_t>(part.call.kind)],
                                 part.call.input.count);
  for (std::size_t i = 0; i < part.content.size(); ++i)
    text += fmt::format("{}p{}", i == 0 ? ": " : " ", part.content[i].parameter);
  return text;
}

void CollectiveTable::arrive(std::uint32_t rank, std::uint32_t number) {
  Rendezvous& meeting = meetings_[number];
  Part& part = meeting.parts[rank];
  part.values.assign(part.call.input.first, part.call.input.first + part.call.input.count);
  std::fill_n(part.call.output.first, part.call.output.count, kGarbage);
  tell(part, place(rank, number, kIsArrived), 1);
  for (std::size_t i = 0; i < part.values.size(); ++i)
    tell(part, place(rank, number, kValues + static_cast<std::uint32_t>(i)),
         std::bit_cast<std::uint64_t>(part.values[i]));
  ++meeting.arrived;
}

void CollectiveTable::tell(Part& part, std::uint64_t place, std::uint64_t value) {
  IncrementalHash fact;
  fact.add(place, value);
  part.told.add_all(fact.sum());
  facts_.add_all(fact.sum());
}

void CollectiveTable::compute(Rendezvous& meeting) const {
  const Part& first = meeting.parts[0];
  const std::size_t count = first.values.size();
  std::vector<double>& result = meeting.result;
  switch (first.call.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
    case CollectiveKind::reduce_scatter:
      result.assign(count, 0.0);
      for (std::uint32_t rank = 0; rank < ranks_; ++rank)
        for (std::size_t i = 0; i < count; ++i) result[i] += meeting.parts[rank].values[i];
      return;
    case CollectiveKind::all_gather:
      result.clear();
      for (std::uint32_t rank = 0; rank < ranks_; ++rank)
        result.insert(result.end(), meeting.parts[rank].values.begin(),
                      meeting.parts[rank].values.end());
      return;
    case CollectiveKind::broadcast:
      result = meeting.parts[static_cast<std::size_t>(first.call.root)].values;
      return;
    case CollectiveKind::barrier:
      result.clear();
      return;
  }
}

void CollectiveTable::complete(std::uint32_t rank, std::uint32_t number) {
  Rendezvous& meeting = meetings_[number];
  ZP_CHECK(meeting.arrived == ranks_, "a collective completes after all ranks have arrived");
  if (meeting.completed == 0) compute(meeting);
  const Call& call = meeting.parts[rank].call;
  const bool has_result =
      call.kind != CollectiveKind::reduce || static_cast<std::uint32_t>(call.root) == rank;
  const std::int64_t from =
      call.kind == CollectiveKind::reduce_scatter ? call.output.count * rank : 0;
  if (has_result) std::copy_n(meeting.result.data() + from, call.output.count, call.output.first);
  tell(meeting.parts[rank], place(rank, number, kIsComplete), 1);
  if (++meeting.completed == ranks_) forget(number);
}

// All of it is in the past.
void CollectiveTable::forget(std::uint32_t number) {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank)
    facts_.remove_all(meetings_[number].parts[rank].told.sum());
}

}  // namespace zeroproof::hook_order

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/hook_order/incremental_hash.h"
#include "sim/hook_order/settings.h"
#include "zeroproof/internal/engine/runtime/process_group.h"

namespace zeroproof::hook_order {

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  barrier
};

// Elements in memory, as the simulated device sees them.
struct Cells {
  double* first = nullptr;
  std::int64_t count = 0;
};

// One rank's part in a collective.
struct Call {
  CollectiveKind kind = CollectiveKind::barrier;
  Cells input;
  Cells output;
  int root = 0;
};

// The collectives of one execution, matched by sequence number and content (lesson 10): a rank
// calls, arrives when its stream has come that far, and completes some time after all arrived.
// Between arrival and completion the output holds garbage. Reuses its memory.
class CollectiveTable {
 public:
  static constexpr double kGarbage = -1.0;  // no contribution is negative

  CollectiveTable(std::uint32_t ranks, IncrementalHash& facts) : ranks_(ranks), facts_(facts) {}

  void clear();  // the next execution begins

  void announce(std::span<const ContentPart> parts) { content_.assign(parts.begin(), parts.end()); }
  // The number of the collective. What is announced belongs to it.
  std::uint32_t call(std::uint32_t rank, const Call& call);
  void arrive(std::uint32_t rank, std::uint32_t number);
  // One that the ranks do not agree on never does.
  bool can_complete(std::uint32_t number) const {
    return meetings_[number].arrived == ranks_ && !meetings_[number].is_broken;
  }
  void complete(std::uint32_t rank, std::uint32_t number);

  std::uint32_t calls(std::uint32_t rank) const { return calls_[rank]; }
  // Two ranks called different things: in words; empty while they agree.
  const std::string& mismatch() const { return mismatch_; }
  std::string description(std::uint32_t rank, std::uint32_t number) const;

 private:
  struct Part {
    bool is_called = false;
    Call call;
    std::uint64_t content_hash = 0;
    std::vector<ContentPart> content;
    std::vector<double> values;  // as they were on arrival
    IncrementalHash told;        // about it, until all have completed
  };
  struct Rendezvous {
    std::uint32_t called = 0;
    std::uint32_t arrived = 0;
    std::uint32_t completed = 0;
    bool is_broken = false;
    std::array<Part, Settings::kRanksMax> parts;
    std::vector<double> result;
  };

  static std::uint64_t place(std::uint32_t rank, std::uint32_t number, std::uint32_t what) {
    return std::uint64_t{1} << 60 | std::uint64_t{number} << 40 | std::uint64_t{rank} << 32 | what;
  }
  void compare(Rendezvous& meeting, std::uint32_t rank, std::uint32_t number);
  void compute(Rendezvous& meeting) const;
  void tell(Part& part, std::uint64_t place, std::uint64_t value);
  void forget(std::uint32_t number);

  std::uint32_t ranks_;
  IncrementalHash& facts_;
  std::vector<Rendezvous> meetings_;
  std::uint32_t used_ = 0;
  std::array<std::uint32_t, Settings::kRanksMax> calls_{};
  std::vector<ContentPart> content_;  // of the next call
  std::string mismatch_;
};

}  // namespace zeroproof::hook_order

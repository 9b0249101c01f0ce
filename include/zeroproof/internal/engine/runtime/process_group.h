#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "zeroproof/internal/engine/runtime/stream.h"

namespace zeroproof {

enum class GroupKind : std::uint8_t { data, sequence, tensor, expert, expert_data };
inline constexpr int kGroupKinds = 5;

enum class ReduceOp : std::uint8_t { sum, avg, max };

// A collective that was issued; the group owns what it needs. Waitable any number of times.
struct Work {
  std::int64_t sequence = -1;  // of its group; -1: no work to wait for
};

// A part of what a collective moves: which parameter, and from which of its elements on.
struct ContentPart {
  std::int32_t parameter = 0;
  std::int64_t begin = 0;
  friend bool operator==(const ContentPart&, const ContentPart&) = default;
};

// Ranks that run collectives together. Each call queues one on a stream and returns; results may
// be read after wait(). All ranks issue the same calls in the same order, with equal element
// counts and dtypes: a difference is a RuntimeFault on every rank, never a hang. Reductions go in
// rank order, each partial sum rounded to the dtype, so equal inputs give equal bits. In-place is
// allowed. Used by the rank that owns it; a group of one rank does no communication.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  virtual GroupKind kind() const = 0;
  virtual int rank() const = 0;  // within the group
  virtual int size() const = 0;
  virtual const std::vector<int>& ranks() const = 0;  // of the world, in group order

  virtual Work all_reduce(Stream& stream, Span data, ReduceOp op) = 0;
  // The result on `root` only; elsewhere `data` is garbage.
  virtual Work reduce(Stream& stream, Span data, int root, ReduceOp op) = 0;
  // `input` has size() times the elements of `output`, rank-major.
  virtual Work reduce_scatter(Stream& stream, Span output, Span input, ReduceOp op) = 0;
  virtual Work all_gather(Stream& stream, Span output, Span input) = 0;
  virtual Work broadcast(Stream& stream, Span data, int root) = 0;
  virtual Work barrier(Stream& stream) = 0;

  // What the next collective of this rank moves, in order; a runtime that compares it with the
  // other ranks' finds those that agree in size alone. Not called where no rank compares.
  virtual bool compares_contents() const = 0;
  virtual void announce(std::span<const ContentPart> parts) = 0;

  // Collectives between the two are independent and go on one stream: a runtime may do
  // them together, and not one before the end. No call waits in between.
  virtual void begin_batch() = 0;
  virtual void end_batch() = 0;

  // Later work on `stream` runs after the collective.
  virtual void wait(Work work, Stream& stream) = 0;
  virtual bool is_completed(Work work) = 0;

  // After it every call of every rank throws a RuntimeFault with this text (ncclCommAbort).
  virtual void abort(const std::string& reason) = 0;
};

}  // namespace zeroproof

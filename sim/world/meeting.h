#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/runtime/host/collective.h"
#include "sim/world/held_span.h"

namespace zeroproof::sim {

// One rank's part in a collective, from the call on.
struct Part {
  host::Collective collective;       // its spans are valid between acquire() and release() alone
  std::vector<ContentPart> content;  // empty: the engine did not say
  HeldSpan input;
  HeldSpan output;
  bool is_at_head = false;  // of its stream: no earlier work is left
  bool is_complete = false;

  bool agrees_with(const Part& other) const;  // what all ranks have to call alike
  std::string description() const;  // "all_reduce(sum) of 4 float32 (parameter 2 from element 0)"
};

// One collective of a group: everybody's call with this sequence number.
struct Rendezvous {
  std::int64_t sequence = 0;
  std::vector<std::optional<Part>> parts;
  bool has_run = false;

  bool is_ready() const;  // all are at the heads of their streams
};

// Where the ranks of one group meet, by sequence number (docs/spec/explorer.md 6, lesson 10).
class MeetingPoint {
 public:
  MeetingPoint(std::string name, std::size_t size, bool has_garbage);

  // The call of one rank; an error where it differs from what another rank calls at this number.
  // The group has failed from then on.
  Rendezvous& call(std::size_t rank, std::int64_t sequence, const host::Collective& collective,
                   std::vector<ContentPart> content = {});
  // Does the work of all, the first time; or says which rank's memory has been freed meanwhile.
  std::optional<std::size_t> run(Rendezvous& meeting);
  void complete(Rendezvous& meeting, std::size_t rank);

  void fail(const std::string& text, bool is_abort);
  const std::string& failure() const { return failure_; }  // empty for none
  void raise_if_failed() const;                            // RuntimeFault, or GroupAborted

  const std::string& name() const { return name_; }
  std::size_t size() const { return size_; }

 private:
  std::string name_;
  std::size_t size_;
  bool has_garbage_;
  std::deque<std::unique_ptr<Rendezvous>> meetings_;  // from first_ on
  std::int64_t first_ = 0;
  std::vector<double> scratch_;
  std::string failure_;
  bool is_aborted_ = false;
};

}  // namespace zeroproof::sim

#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/events.h"
#include "zeroproof/internal/engine/runtime/process_group.h"

namespace zeroproof {

// How upstream made a collective: on the default group or on one it names; awaited by a handle or
// at once; and the bytes it sends where that is not what our span has. With what it moves.
struct CollectiveForm {
  bool is_default_group = false;
  bool is_async = false;
  std::int64_t bytes = -1;
  std::vector<ContentPart> contents = {};  // Communicator::contents_of(); else not compared
};

// The collectives of one engine over one process group, with their events: coll.issue before,
// coll.complete after (synchronous ones) or at wait(). Every rank makes the same calls.
class Communicator {
 public:
  // All must outlive it.
  Communicator(ProcessGroup& group, const Events& events);

  ProcessGroup& group() const { return group_; }
  int size() const { return group_.size(); }

  Work all_reduce(Stream& stream, Span data, ReduceOp op, const CollectiveForm& form);
  Work reduce(Stream& stream, Span data, int root, ReduceOp op, const CollectiveForm& form);
  Work reduce_scatter(Stream& stream, Span output, Span input, ReduceOp op,
                      const CollectiveForm& form);
  Work all_gather(Stream& stream, Span output, Span input, const CollectiveForm& form);
  Work broadcast(Stream& stream, Span data, int root, const CollectiveForm& form);
  // Runs `issues`, whose collectives do not depend on each other: the group may do them together.
  // Those that were issued before it threw are done all the same.
  template <class Issues>
  void together(Issues issues) {
    group_.begin_batch();
    try {
      issues();
    } catch (...) {
      group_.end_batch();
      throw;
    }
    group_.end_batch();
  }
  // What a collective moves, where the group compares that between ranks: `part_of` each of the
  // items. No effect elsewhere.
  template <class Items, class PartOf>
  std::vector<ContentPart> contents_of(const Items& items, PartOf part_of) const {
    std::vector<ContentPart> parts;
    if (!group_.compares_contents()) return parts;
    parts.reserve(std::size(items));
    for (const auto& item : items) parts.push_back(part_of(item));
    return parts;
  }
  // Of one that was issued asynchronously.
  void wait(Work work, Stream& stream);
  // Of one that was issued asynchronously, and for which no caller will wait.
  void forget(Work work) { outstanding_.erase(work.sequence); }
  std::size_t outstanding() const { return outstanding_.size(); }  // that events will report

 private:
  struct Issued {
    std::string_view op;
    std::string_view group;
    std::int64_t sequence = 0;
    std::int64_t bytes = 0;
    bool is_async = false;
  };

  Issued issue(std::string_view op, std::int64_t bytes, const CollectiveForm& form);
  void complete(const Issued& issued);
  Work finish(const Issued& issued, Work work);
  void send(EventKind kind, const Issued& issued) const;

  ProcessGroup& group_;
  const Events& events_;
  std::string label_;  // "g0_1"
  std::int64_t next_default_ = 0;
  std::int64_t next_named_ = 0;
  std::map<std::int64_t, Issued> outstanding_;  // by the group's sequence
};

}  // namespace zeroproof

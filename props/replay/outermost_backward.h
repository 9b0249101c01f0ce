#pragma once

#include <cstdint>
#include <set>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// Follows the backwards of one rank. A backward lasts from the begin to the end of an outermost
// graph task; a mark before it says that DDP's or FSDP2's no_sync excludes a model from its
// reduction. Feed all events of the rank in order. Not thread-safe.
class OutermostBackward {
 public:
  // `names` must outlive it.
  explicit OutermostBackward(const NameTable& names) : names_(names) {}

  void on_event(const HookEvent& event);

  // Whether the last event began or ended a backward.
  bool begins() const { return edge_ == Edge::begin; }
  bool ends() const { return edge_ == Edge::end; }
  std::int32_t depth() const { return depth_; }  // open graph tasks

  // Of the backward that runs, or of the last one.
  bool is_unsynced() const { return !unsynced_.empty(); }
  bool is_unsynced(EngineId model) const { return unsynced_.contains(model); }

 private:
  enum class Edge { none, begin, end };

  const NameTable& names_;
  Edge edge_ = Edge::none;
  std::int32_t depth_ = 0;
  std::set<EngineId> next_unsynced_;
  std::set<EngineId> unsynced_;
};

}  // namespace zeroproof

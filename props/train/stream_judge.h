#pragma once

#include <deque>
#include <vector>

#include "props/replay/properties_level.h"
#include "props/stream_properties.h"
#include "props/train/run_watch.h"

namespace zeroproof::train {

// Judges only what the streams of each rank do: P46 to P48 hold or not in whatever
// order the work ran. Of one world.
class StreamJudge final : public RunWatch {
 public:
  explicit StreamJudge(int world_size) : ranks_(static_cast<std::size_t>(world_size)) {}

  std::vector<RankObservers> observers() override;
  AccessObserver& observer(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  void attach(std::size_t, EngineTarget::Options&) override {}

  // Call once, after the world.
  PropertiesReport finish();

 private:
  std::deque<StreamOrderCheck> ranks_;
};

}  // namespace zeroproof::train

#pragma once

#include <cstddef>
#include <vector>

#include "props/train/engine_target.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof::train {

// Looks on at every rank of a run, from its world and from its models.
class RunWatch {
 public:
  virtual ~RunWatch() = default;

  // One a rank; of the world that runs it.
  virtual std::vector<RankObservers> observers() = 0;
  // On the thread of the rank, before its engines are made.
  virtual void attach(std::size_t rank, EngineTarget::Options& options) = 0;
};

}  // namespace zeroproof::train

#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/runtime/address_board.h"
#include "engine/runtime/cuda/peer_barrier.h"

namespace zeroproof::cuda {

// What the ranks of one process share whose GPUs reach each other's memory. Thread-safe.
struct Peers {
  explicit Peers(std::vector<std::shared_ptr<Gpu>> gpus)
      : addresses(static_cast<int>(gpus.size())), barrier(std::move(gpus)) {}

  AddressBoard addresses;
  PeerBarrier barrier;
};

// Lets kernels and copies of each of these GPUs reach the stream-ordered memory of the others;
// false where the machine cannot.
bool share_memory(const std::vector<int>& ordinals);

}  // namespace zeroproof::cuda

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/runtime/address_board.h"
#include "engine/runtime/cuda/peer_barrier.h"

namespace zeroproof::cuda {

// What ranks share whose GPUs reach each other's memory. Thread-safe.
class Peers {
 public:
  using Addresses = AddressBoard::Addresses;
  virtual ~Peers() = default;

  // By rank, as this rank reaches them, when all have published; see AddressBoard::exchange. Empty,
  // on every rank alike, where some rank's memory is none that others reach.
  virtual std::vector<Addresses> exchange(int rank, const std::string& call, Addresses mine,
                                          const WhileWaiting& while_waiting) = 0;
  // As AddressBoard's.
  virtual void finish(int rank) = 0;
  virtual void wait_for_others(int rank, const WhileWaiting& while_waiting) = 0;
  virtual PeerBarrier& barrier() = 0;
};

// Of the ranks of one process, in their order; null where the machine cannot.
std::unique_ptr<Peers> thread_peers(const std::vector<std::shared_ptr<Gpu>>& gpus);

// Whether each of these GPUs of this process can reach the memory of the others.
bool can_share_memory(const std::vector<int>& ordinals);

}  // namespace zeroproof::cuda

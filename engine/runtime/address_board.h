#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "engine/runtime/rank_exchange.h"

namespace zeroproof {

// Where the ranks of one process publish the addresses of their memory, once a collective and all
// in the same order. Thread-safe.
class AddressBoard {
 public:
  using Addresses = std::vector<const void*>;

  explicit AddressBoard(int ranks)
      : told_(static_cast<std::size_t>(ranks)), finished_(static_cast<std::size_t>(ranks)) {}

  // By rank, when all have published; until then `while_waiting` hears now and then how long it
  // has been. `call` says what they are for: RuntimeFault on every
  // rank where two differ.
  std::vector<Addresses> exchange(int rank, const std::string& call, Addresses mine,
                                  const WhileWaiting& while_waiting);
  // The rank has queued all that it does with these addresses.
  void finish(int rank);
  // Until every rank has finished what this one has, so that memory of it can be freed: CUDA
  // refuses a copy from memory that its owner's host has given back.
  void wait_for_others(int rank, const WhileWaiting& while_waiting);

 private:
  struct Round {
    explicit Round(std::size_t ranks) : of(ranks), calls(ranks) {}

    std::vector<Addresses> of;       // by rank
    std::vector<std::string> calls;  // by rank
    std::atomic<std::size_t> told = 0;
    std::size_t taken = 0;
  };

  Round& tell(int rank, const std::string& call, Addresses mine);
  bool have_others_finished(int rank);

  std::mutex mutex_;
  std::vector<std::size_t> told_;      // how often, by rank
  std::vector<std::size_t> finished_;  // of those
  std::deque<Round> rounds_;           // that somebody has still to take, from number first_ on
  std::size_t first_ = 0;
};

}  // namespace zeroproof

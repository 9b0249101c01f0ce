#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/runtime/rank_exchange.h"
#include "engine/runtime/shared_region.h"

namespace zeroproof {

// An address of one process as another finds it: in which of its segments, and where in there.
struct SharedAddress {
  std::uint64_t segment = kNone;
  std::uint64_t offset = 0;
  static constexpr std::uint64_t kNone = 0;          // a null pointer
  static constexpr std::uint64_t kUnshared = ~0ULL;  // memory that others cannot reach
  friend bool operator==(const SharedAddress&, const SharedAddress&) = default;
};

// The AddressBoard of ranks that are processes of one machine, one process's end of it: in shared
// memory each rank has two places, which consecutive rounds use in turn. A rank has read a round
// before it publishes the next one, so a place is free when its rank comes to it again.
class ProcessBoard {
 public:
  using Addresses = std::vector<SharedAddress>;

  static std::size_t bytes_of(int ranks);
  // The board's bytes begin at the region's data.
  ProcessBoard(std::shared_ptr<SharedRegion> region, int rank, int ranks);

  // By rank, when all have published, however many each has. As AddressBoard::exchange.
  std::vector<Addresses> exchange(const std::string& call, const Addresses& mine,
                                  const WhileWaiting& while_waiting);

 private:
  struct Entry;
  struct Seat;

  Seat& seat(int rank) const;
  Entry& entry(int rank) const;
  void publish(const std::string& call, const Addresses& mine, std::size_t part);
  void wait_for_all(const WhileWaiting& while_waiting) const;

  std::shared_ptr<SharedRegion> region_;
  int rank_;
  int ranks_;
  std::uint64_t rounds_ = 0;  // that this rank has published
};

}  // namespace zeroproof
